/* device.cpp -- tern's devices as PyTorch asks for them: guard, hooks, generators. */
#include "torch_tern.h"
#include <ATen/core/GeneratorForPrivateuseone.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace torch_tern
{

/* ---- which devices there are ----------------------------------------------------------------- */

/* false where there is none of that name: tern's error says why. */
static bool add_device(std::vector<std::string> &list, const std::string &device)
{
    const char *name = tern_device_canonical(device.c_str());
    if (name && std::find(list.begin(), list.end(), name) == list.end())
        list.push_back(name);
    return name != nullptr;
}

/* The devices that a list ("opencl:1,cpu") names, and in *missing those that are not there, and why;
 * for an empty list tern's best device, then all others, the cpu last. */
static std::vector<std::string> list_devices(const std::string &wanted, std::string *missing)
{
    std::vector<std::string> list;
    for (size_t at = 0; !wanted.empty() && at <= wanted.size();) {
        const size_t comma = std::min(wanted.find(',', at), wanted.size());
        const std::string name = wanted.substr(at, comma - at);
        if (!add_device(list, name))
            *missing += (missing->empty() ? "'" : ", '") + name + "' (" + tern_last_error() + ")";
        tern_clear_error();
        at = comma + 1;
    }
    if (wanted.empty()) {
        add_device(list, "auto");
        for (const char *kind : {"cuda", "opencl"})
            for (int i = 0; i < tern_device_count(kind); i++)
                add_device(list, std::string(kind) + ":" + std::to_string(i));
        add_device(list, "cpu");
    }
    tern_clear_error();
    return list;
}

static std::string wanted_devices;
static std::atomic<bool> devices_are_listed{false};

static const std::vector<std::string> &devices()
{
    static const std::vector<std::string> list = [] {
        devices_are_listed = true;
        const char *variable = getenv("TERN_TORCH_DEVICES");
        std::string missing;
        auto found = list_devices(!wanted_devices.empty() ? wanted_devices
                                  : variable              ? variable
                                                          : "",
                                  &missing);
        if (!missing.empty())
            TORCH_WARN("TERN_TORCH_DEVICES: left out, since tern has no such device: ", missing);
        return found;
    }();
    return list;
}

void choose_devices(const std::string &wanted)
{
    TORCH_CHECK(!devices_are_listed, "torch_tern.devices: the devices are in use already; choose "
                                     "them before the first tensor is made on one");
    std::string missing;
    list_devices(wanted, &missing);
    TORCH_CHECK_VALUE(missing.empty(), "torch_tern.devices: tern has no device ", missing);
    wanted_devices = wanted;
}

int device_count()
{
    return (int)devices().size();
}

const char *device_name(int index)
{
    TORCH_CHECK(index >= 0 && index < device_count(), "tern: there is no device tern:", index,
                "; there are ", device_count(), " (TERN_TORCH_DEVICES lists them)");
    return devices()[(size_t)index].c_str();
}

static thread_local int current = 0;

int current_device()
{
    return current;
}

int exchange_device(int index)
{
    const int before = current;
    if (index >= 0 && index != before) {
        device_name(index);
        current = index;
    }
    return before;
}

/* ---- the guard ------------------------------------------------------------------------------- */

/* A device of tern's has one queue, which is in order: every stream is that one. An event is
 * reached when the queue is empty. */
struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override
    {
        return device_type;
    }
    c10::Device exchangeDevice(c10::Device device) const override
    {
        return {device_type, (c10::DeviceIndex)exchange_device(device.index())};
    }
    c10::Device getDevice() const override
    {
        return {device_type, (c10::DeviceIndex)current_device()};
    }
    void setDevice(c10::Device device) const override
    {
        exchange_device(device.index());
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override
    {
        if (device.index() >= 0 && device.index() < device_count())
            current = device.index();
    }
    c10::Stream getStream(c10::Device device) const override
    {
        return c10::Stream(c10::Stream::DEFAULT, device);
    }
    c10::Stream getDefaultStream(c10::Device device) const override
    {
        return getStream(device);
    }
    c10::Stream getNewStream(c10::Device device, int) const override
    {
        return getStream(device);
    }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override
    {
        return getStream(device);
    }
    c10::Stream exchangeStream(c10::Stream stream) const override
    {
        return stream;
    }
    c10::DeviceIndex deviceCount() const noexcept override
    {
        return (c10::DeviceIndex)device_count();
    }
    void destroyEvent(void *, c10::DeviceIndex) const noexcept override
    {
    }
    void record(void **event, const c10::Stream &stream, c10::DeviceIndex,
                c10::EventFlag) const override
    {
        *event = reinterpret_cast<void *>((uintptr_t)(stream.device_index() + 1));
    }
    void block(void *, const c10::Stream &) const override
    {
    }
    bool queryEvent(void *event) const override
    {
        synchronizeEvent(event);
        return true;
    }
    void synchronizeEvent(void *event) const override
    {
        if (event)
            synchronizeDevice((c10::DeviceIndex)((uintptr_t)event - 1));
    }
    bool queryStream(const c10::Stream &stream) const override
    {
        synchronizeStream(stream);
        return true;
    }
    void synchronizeStream(const c10::Stream &stream) const override
    {
        synchronizeDevice(stream.device_index());
    }
    void synchronizeDevice(c10::DeviceIndex index) const override
    {
        check(tern_synchronize(device_name(index)), "synchronize");
    }
    void recordDataPtrOnStream(const c10::DataPtr &, const c10::Stream &) const override
    {
    }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

/* ---- generators ------------------------------------------------------------------------------ */

/* A seed and an offset, as PyTorch's generators of GPUs are; the default one of a device is tern's
 * own. */
struct Generator final : c10::GeneratorImpl {
    const bool is_default;
    tern_rng_state state{c10::default_rng_seed_val, 0};

    Generator(int index, bool is_default_)
        : GeneratorImpl({device_type, (c10::DeviceIndex)index}, c10::DispatchKeySet(dispatch_key)),
          is_default(is_default_)
    {
    }
    const char *device_string() const
    {
        return device_name(device_.index());
    }
    tern_rng_state get() const
    {
        tern_rng_state now = state;
        if (is_default)
            check(tern_get_rng_state(device_string(), &now), "get_rng_state");
        return now;
    }
    void set(tern_rng_state to)
    {
        state = to;
        if (is_default)
            check(tern_set_rng_state(device_string(), &to), "set_rng_state");
    }
    void set_current_seed(uint64_t seed) override
    {
        set({seed, 0});
    }
    void set_offset(uint64_t offset) override
    {
        set({get().seed, offset});
    }
    uint64_t get_offset() const override
    {
        return get().offset;
    }
    uint64_t current_seed() const override
    {
        return get().seed;
    }
    uint64_t seed() override
    {
        const uint64_t random = c10::detail::getNonDeterministicRandom(true);
        set_current_seed(random);
        return random;
    }
    void set_state(const c10::TensorImpl &bytes) override
    {
        TORCH_CHECK(bytes.numel() == 16 && bytes.dtype() == caffe2::TypeMeta::Make<uint8_t>(),
                    "tern: the state of a generator is 16 bytes, not ", bytes.numel(), " elements");
        tern_rng_state to{};
        memcpy(&to.seed, bytes.data(), 8);
        memcpy(&to.offset, static_cast<const char *>(bytes.data()) + 8, 8);
        set(to);
    }
    c10::intrusive_ptr<c10::TensorImpl> get_state() const override
    {
        Tensor bytes = at::empty({16}, at::kByte);
        const tern_rng_state now = get();
        memcpy(bytes.data_ptr(), &now.seed, 8);
        memcpy(static_cast<char *>(bytes.data_ptr()) + 8, &now.offset, 8);
        return bytes.getIntrusivePtr();
    }
    Generator *clone_impl() const override
    {
        auto *other = new Generator(device_.index(), false);
        other->state = get();
        return other;
    }
};

const at::Generator &default_generator(int index)
{
    static const std::vector<at::Generator> all = [] {
        std::vector<at::Generator> list;
        for (int i = 0; i < device_count(); i++)
            list.push_back(at::make_generator<Generator>(i, true));
        return list;
    }();
    device_name(index < 0 ? current_device() : index);
    return all[(size_t)(index < 0 ? current_device() : index)];
}

at::Generator new_generator(int index)
{
    return at::make_generator<Generator>(index < 0 ? current_device() : index, false);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/* The first n bytes of a block; needs a frame. */
static tern_tensor *bytes_of(Block *block, int64_t n)
{
    if (block->is_later)
        make_now(block);
    tern_memory_handle handle{};
    check(tern_get_memory_handle(block->typed, &handle), "resize_");
    tern_from_blob_options options = tern_from_blob_defaults();
    options.device = device_name(block->device);
    options.offset = (int64_t)handle.offset;
    return tern_from_blob(handle.memory, tern_shape_from(1, &n), TERN_U8, &options);
}

/* The storage's memory becomes one of that many bytes, with as many of its elements as fit. */
static void resize_storage(const c10::Storage &storage, size_t bytes)
{
    auto *impl = storage.unsafeGetStorageImpl();
    const int before = exchange_device(storage.device().index());
    c10::DataPtr fresh = allocator()->allocate(bytes);
    exchange_device(before);
    auto *from = static_cast<Block *>(storage.data_ptr().get_context());
    auto *to = static_cast<Block *>(fresh.get_context());
    const int64_t n = (int64_t)std::min(from ? from->bytes : 0, bytes);
    if (n > 0) {
        Frame frame;
        check(tern_copy_(bytes_of(to, n), bytes_of(from, n)) != nullptr, "resize_");
    }
    impl->set_data_ptr_noswap(std::move(fresh));
    impl->set_nbytes(bytes);
}

struct Hooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override
    {
        return true;
    }
    bool isAvailable() const override
    {
        return device_count() > 0;
    }
    bool hasPrimaryContext(c10::DeviceIndex) const override
    {
        return true;
    }
    c10::DeviceIndex deviceCount() const override
    {
        return (c10::DeviceIndex)device_count();
    }
    void setCurrentDevice(c10::DeviceIndex index) const override
    {
        exchange_device(index);
    }
    c10::DeviceIndex getCurrentDevice() const override
    {
        return (c10::DeviceIndex)current_device();
    }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override
    {
        return (c10::DeviceIndex)exchange_device(index);
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override
    {
        return (c10::DeviceIndex)exchange_device(index);
    }
    const at::Generator &getDefaultGenerator(c10::DeviceIndex index) const override
    {
        return default_generator(index);
    }
    at::Generator getNewGenerator(c10::DeviceIndex index) const override
    {
        return new_generator(index);
    }
    at::Device getDeviceFromPtr(void *) const override
    {
        return {device_type, (c10::DeviceIndex)current_device()};
    }
    at::Allocator *getPinnedMemoryAllocator() const override
    {
        return at::getCPUAllocator(); /* tern copies from any memory of the host */
    }
    void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override
    {
        resize_storage(storage, bytes);
    }
};
static const bool hooks_are_registered = [] {
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    return true;
}();

} // namespace torch_tern
