// tern.hpp -- tern for C++17: handles that own their objects, operators, modules as classes, and
// exceptions. It is a header only.
//
//   tern::Tensor x = tern::randn({64, 32}), y = x.matmul(x.t()).relu();
//   y.sum().backward();
//
// Every function of tern/ops/ that returns one tensor is here under its name without tern_
// (generated from the headers: tern/ops.inc), as a function and, if its first argument is a tensor,
// as a method. A Tensor owns its tensor, which is freed with its last handle. Errors are
// exceptions, tern::Error. The functions of C take and return what get() returns.
#ifndef TERN_HPP
#define TERN_HPP
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <tern/tern.h>
#include <type_traits>
#include <utility>
#include <vector>

namespace tern
{

// ---- errors -----------------------------------------------------------------------------------

// An error of tern. what() is the message; creating the exception clears the recorded error.
class Error : public std::runtime_error
{
  public:
    explicit Error(const tern_error_info &info)
        : std::runtime_error(info.message ? info.message : "tern: an error that was not recorded"),
          status_(info.status), line_(info.line), module_(info.module ? info.module : ""),
          operation_(info.operation ? info.operation : ""), file_(info.file ? info.file : "")
    {
        tern_clear_error();
    }
    tern_status status() const
    {
        return status_;
    }
    const std::string &module() const
    {
        return module_;
    } // "blocks.0.mlp"
    const std::string &operation() const
    {
        return operation_;
    } // "linear"
    const std::string &file() const
    {
        return file_;
    } // with tern/where.h
    int line() const
    {
        return line_;
    }

  private:
    tern_status status_;
    int line_;
    std::string module_, operation_, file_;
};

namespace detail
{

// The exception of a module's forward while it passes through C, which keeps only the message.
inline std::unique_ptr<Error> &passing()
{
    static thread_local std::unique_ptr<Error> error;
    return error;
}

[[noreturn]] inline void fail()
{
    tern_error_info info = {};
    tern_get_error(&info);
    std::unique_ptr<Error> passed = std::move(passing());
    Error error(info);
    throw passed && std::string(passed->what()) == error.what() ? *passed : error;
}

inline void check(tern_status status)
{
    if (status != TERN_OK)
        fail();
}

template <class T> T *given(T *pointer)
{
    if (!pointer)
        fail();
    return pointer;
}

// A scope for the tensors that C creates; they are freed at its end.
class Scope
{
  public:
    Scope() : block_(tern_scope_enter())
    {
    }
    ~Scope()
    {
        tern_scope_leave(&block_);
    }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    tern_scope_block block_;
};

} // namespace detail

// ---- shapes and numbers -----------------------------------------------------------------------

// A list of sizes or dims, {2, 3}; one number is a list of one.
class Shape
{
  public:
    Shape() : shape_{}
    {
    }
    Shape(std::initializer_list<std::int64_t> dims)
        : shape_(tern_shape_from(static_cast<int>(dims.size()), dims.begin()))
    {
    }
    template <class T, class = std::enable_if_t<std::is_integral<T>::value>>
    Shape(T dim) : Shape({static_cast<std::int64_t>(dim)})
    {
    }
    Shape(const std::vector<std::int64_t> &dims)
        : shape_(tern_shape_from(static_cast<int>(dims.size()), dims.data()))
    {
    }
    Shape(const tern_shape &shape) : shape_(shape)
    {
    }
    operator const tern_shape &() const
    {
        return shape_;
    }
    int size() const
    {
        return shape_.ndim;
    }
    std::int64_t operator[](int i) const
    {
        return shape_.dims[i];
    }
    const std::int64_t *begin() const
    {
        return shape_.dims;
    }
    const std::int64_t *end() const
    {
        return shape_.dims + shape_.ndim;
    }

  private:
    tern_shape shape_;
};

// A number, which keeps its type: integer, real or bool.
class Scalar
{
  public:
    template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
    Scalar(T value)
        : scalar_(std::is_same<T, bool>::value ? tern_scalar_bool(value != T())
                  : std::is_floating_point<T>::value
                      ? tern_scalar_real(static_cast<double>(value))
                      : tern_scalar_int(static_cast<std::int64_t>(value)))
    {
    }
    Scalar(const tern_scalar &scalar) : scalar_(scalar)
    {
    }
    operator tern_scalar() const
    {
        return scalar_;
    }

  private:
    tern_scalar scalar_;
};

namespace detail
{
template <class T> constexpr tern_dtype dtype_of()
{
    static_assert(std::is_arithmetic<T>::value, "elements are numbers");
    if (std::is_floating_point<T>::value)
        return sizeof(T) == 4 ? TERN_F32 : TERN_F64;
    if (std::is_same<T, bool>::value)
        return TERN_BOOL;
    constexpr bool is_signed = std::is_signed<T>::value;
    return sizeof(T) == 8   ? (is_signed ? TERN_I64 : TERN_U64)
           : sizeof(T) == 4 ? (is_signed ? TERN_I32 : TERN_U32)
           : sizeof(T) == 2 ? (is_signed ? TERN_I16 : TERN_U16)
                            : (is_signed ? TERN_I8 : TERN_U8);
}
} // namespace detail

// ---- tensors ----------------------------------------------------------------------------------

// A handle that owns a tensor; copies are handles of the same tensor. An empty handle stands for an
// optional argument that is not given.
struct ValuesIndices;

class Tensor
{
  public:
    Tensor() = default;
    // Shares a tensor that C created.
    explicit Tensor(tern_tensor *x) : x_(x ? detail::given(tern_keep(x)) : nullptr)
    {
    }
    // A tensor of these values, with the dtype of T, on the default device.
    template <class T>
    explicit Tensor(const std::vector<T> &values)
        : Tensor(values, {static_cast<std::int64_t>(values.size())})
    {
    }
    template <class T>
    Tensor(const std::vector<T> &values, const Shape &shape, const char *device = nullptr)
    {
        detail::Scope scope;
        std::int64_t n = 1;
        for (std::int64_t dim : shape)
            n *= dim;
        if (n != static_cast<std::int64_t>(values.size())) {
            tern_fail(TERN_ERR_SHAPE, "tern::Tensor: %lld values do not fill a shape of %lld",
                      static_cast<long long>(values.size()), static_cast<long long>(n));
            detail::fail();
        }
        x_ = tern_keep(detail::given((::tern_from_data)(static_cast<const void *>(values.data()),
                                                        shape, detail::dtype_of<T>(), device)));
    }
    template <class T>
    Tensor(std::initializer_list<T> values, const Shape &shape, const char *device = nullptr)
        : Tensor(std::vector<T>(values), shape, device)
    {
    }
    Tensor(const Tensor &other) : x_(other.x_ ? tern_keep(other.x_) : nullptr)
    {
    }
    Tensor(Tensor &&other) noexcept : x_(std::exchange(other.x_, nullptr))
    {
    }
    Tensor &operator=(Tensor other) noexcept
    {
        std::swap(x_, other.x_);
        return *this;
    }
    ~Tensor()
    {
        tern_release(x_);
    }

    tern_tensor *get() const
    {
        return x_;
    }
    explicit operator bool() const
    {
        return x_;
    }

    int dim() const
    {
        return tern_dim(there());
    }
    std::int64_t size(int dim) const
    {
        std::int64_t size = tern_size(there(), dim);
        if (size < 0)
            detail::fail();
        return size;
    }
    std::int64_t numel() const
    {
        return tern_numel(there());
    }
    Shape shape() const
    {
        return tern_shape_of(there());
    }
    tern_dtype dtype() const
    {
        return tern_dtype_of(there());
    }
    std::string device() const
    {
        return tern_device(there());
    }
    bool is_contiguous() const
    {
        return tern_is_contiguous(there());
    }

    // The value of a tensor with one element.
    double item() const
    {
        double value = tern_item(x_);
        if (value != value) // NaN: an error, or the value
            detail::check(tern_last_status());
        return value;
    }
    template <class T> std::vector<T> to_vector() const
    {
        detail::Scope scope;
        if (dtype() != detail::dtype_of<T>()) {
            tern_fail(TERN_ERR_DTYPE, "tern::Tensor::to_vector: the tensor is %s",
                      tern_dtype_name(dtype()));
            detail::fail();
        }
        std::vector<T> values(static_cast<std::size_t>(numel()));
        detail::check((::tern_copy_to_host)(x_, values.data(), values.size() * sizeof(T)));
        return values;
    }
    std::string to_text() const
    {
        char *text = detail::given(tern_to_text(x_));
        std::string copy = text;
        tern_free_text(text);
        return copy;
    }

    bool requires_grad() const
    {
        return tern_requires_grad(there());
    }
    const Tensor &requires_grad_(bool on = true) const
    {
        detail::given(tern_requires_grad_(x_, on));
        return *this;
    }
    // The gradient; an empty handle if there is none.
    Tensor grad() const
    {
        return Tensor(tern_grad(x_));
    }
    void backward() const
    {
        detail::Scope scope;
        detail::check(tern_backward(x_));
    }

#define TERN_OP(NAME, FUNCTION, ALL, HANDED, REST, PLAIN, METHOD) Tensor NAME REST const;
#define TERN_MAKER(NAME, FUNCTION, ALL, HANDED)
#include <tern/ops.inc>
#undef TERN_OP
#undef TERN_MAKER

    // x[i] is entry i of dim 0, where a negative i counts from the end; x[t] has the entries of dim
    // 0 that t names, or the elements where the mask t is true.
    Tensor operator[](std::int64_t i) const;
    Tensor operator[](const Tensor &index) const;
    // Reductions along a dim that return values and indices: auto [values, indices] = ....
    ValuesIndices max(int dim, bool keepdim = false) const;
    ValuesIndices min(int dim, bool keepdim = false) const;
    ValuesIndices sort(int dim = -1, bool descending = false) const;
    ValuesIndices topk(std::int64_t k, int dim = -1, bool largest = true) const;
    // Functions that return views of the pieces.
    std::vector<Tensor> chunk(int chunks, int dim = 0) const;
    std::vector<Tensor> split(std::int64_t size, int dim = 0) const;
    std::vector<Tensor> unbind(int dim = 0) const;

  private:
    // The tensor, for functions of C that record no error for an empty handle.
    tern_tensor *there() const
    {
        if (!x_) {
            tern_fail(TERN_ERR_ARGUMENT, "tern::Tensor: the handle is empty");
            detail::fail();
        }
        return x_;
    }
    tern_tensor *x_ = nullptr;
};

struct ValuesIndices {
    Tensor values, indices;
};

namespace detail
{
// A list in the form that C takes.
class Pointers
{
  public:
    explicit Pointers(const std::vector<Tensor> &tensors)
    {
        for (const Tensor &x : tensors)
            all_.push_back(x.get());
    }
    tern_tensor *const *data() const
    {
        return all_.data();
    }

  private:
    std::vector<tern_tensor *> all_;
};

template <class F> ValuesIndices two(F f)
{
    Scope scope;
    tern_values_indices out = {};
    check(f(&out));
    return {Tensor(given(out.values)), Tensor(given(out.indices))};
}

// Calls f(pieces, capacity), which fills pieces, and only counts them if pieces is null.
template <class F> std::vector<Tensor> several(F f)
{
    Scope scope;
    int n = f(static_cast<tern_tensor **>(nullptr), 0);
    if (n < 0)
        fail();
    std::vector<tern_tensor *> pieces(static_cast<std::size_t>(n) + 1);
    if (f(pieces.data(), n) != n)
        fail();
    std::vector<Tensor> tensors;
    for (int i = 0; i < n; i++)
        tensors.emplace_back(pieces[static_cast<std::size_t>(i)]);
    return tensors;
}

// Returns the result of f, and frees the other tensors that f created.
template <class F> Tensor made(F f)
{
    Scope scope;
    return Tensor(given(f()));
}
} // namespace detail

#define TERN_MADE_(FUNCTION, HANDED) return detail::made([&] { return (::FUNCTION)HANDED; })
#define TERN_OP(NAME, FUNCTION, ALL, HANDED, REST, PLAIN, METHOD)                                  \
    inline Tensor NAME ALL                                                                         \
    {                                                                                              \
        TERN_MADE_(FUNCTION, HANDED);                                                              \
    }                                                                                              \
    inline Tensor Tensor::NAME PLAIN const                                                         \
    {                                                                                              \
        TERN_MADE_(FUNCTION, METHOD);                                                              \
    }
#define TERN_MAKER(NAME, FUNCTION, ALL, HANDED)                                                    \
    inline Tensor NAME ALL                                                                         \
    {                                                                                              \
        TERN_MADE_(FUNCTION, HANDED);                                                              \
    }
#include <tern/ops.inc>
#undef TERN_OP
#undef TERN_MAKER
#undef TERN_MADE_

inline Tensor cat(const std::vector<Tensor> &tensors)
{
    return cat(tensors, 0);
}
inline Tensor stack(const std::vector<Tensor> &tensors)
{
    return stack(tensors, 0);
}
inline Tensor Tensor::operator[](std::int64_t i) const
{
    return select(0, i);
}
inline Tensor Tensor::operator[](const Tensor &index) const
{
    return this->index(index);
}
inline ValuesIndices Tensor::max(int dim, bool keepdim) const
{
    return detail::two([&](auto *out) { return tern_max_dim(x_, dim, keepdim, out); });
}
inline ValuesIndices Tensor::min(int dim, bool keepdim) const
{
    return detail::two([&](auto *out) { return tern_min_dim(x_, dim, keepdim, out); });
}
inline ValuesIndices Tensor::sort(int dim, bool descending) const
{
    return detail::two([&](auto *out) { return tern_sort(x_, dim, descending, out); });
}
inline ValuesIndices Tensor::topk(std::int64_t k, int dim, bool largest) const
{
    return detail::two([&](auto *out) { return tern_topk(x_, k, dim, largest, true, out); });
}
inline std::vector<Tensor> Tensor::chunk(int chunks, int dim) const
{
    return detail::several(
        [&](tern_tensor **p, int n) { return tern_chunk(x_, chunks, dim, p, n); });
}
inline std::vector<Tensor> Tensor::split(std::int64_t size, int dim) const
{
    return detail::several([&](tern_tensor **p, int n) { return tern_split(x_, size, dim, p, n); });
}
inline std::vector<Tensor> Tensor::unbind(int dim) const
{
    return detail::several([&](tern_tensor **p, int n) { return tern_unbind(x_, dim, p, n); });
}

#define TERN_OPERATOR(SIGN, NAME)                                                                  \
    inline Tensor operator SIGN(const Tensor &x, const Tensor &y)                                  \
    {                                                                                              \
        return NAME(x, y);                                                                         \
    }                                                                                              \
    inline Tensor operator SIGN(const Tensor &x, const Scalar &y)                                  \
    {                                                                                              \
        return NAME(x, y);                                                                         \
    }
TERN_OPERATOR(+, add)
TERN_OPERATOR(-, sub)
TERN_OPERATOR(*, mul)
TERN_OPERATOR(/, div)
TERN_OPERATOR(==, eq)
TERN_OPERATOR(!=, ne)
TERN_OPERATOR(<, lt)
TERN_OPERATOR(<=, le)
TERN_OPERATOR(>, gt)
TERN_OPERATOR(>=, ge)
TERN_OPERATOR(%, remainder)
TERN_OPERATOR(&, bitwise_and)
TERN_OPERATOR(|, bitwise_or)
TERN_OPERATOR(^, bitwise_xor)
#undef TERN_OPERATOR
inline Tensor operator~(const Tensor &x)
{
    return bitwise_not(x);
}
inline Tensor operator+(const Scalar &x, const Tensor &y)
{
    return add(y, x);
}
inline Tensor operator*(const Scalar &x, const Tensor &y)
{
    return mul(y, x);
}
inline Tensor operator-(const Scalar &x, const Tensor &y)
{
    return add(neg(y), x);
}
inline Tensor operator/(const Scalar &x, const Tensor &y)
{
    return mul(reciprocal(y), x);
}
inline Tensor operator-(const Tensor &x)
{
    return neg(x);
}
#define TERN_IN_PLACE(SIGN, NAME)                                                                  \
    inline const Tensor &operator SIGN(const Tensor &x, const Tensor &y)                           \
    {                                                                                              \
        return NAME(x, y), x;                                                                      \
    }                                                                                              \
    inline const Tensor &operator SIGN(const Tensor &x, const Scalar &y)                           \
    {                                                                                              \
        return NAME(x, y), x;                                                                      \
    }
TERN_IN_PLACE(+=, add_)
TERN_IN_PLACE(-=, sub_)
TERN_IN_PLACE(*=, mul_)
TERN_IN_PLACE(/=, div_)
#undef TERN_IN_PLACE

// ---- the thread -------------------------------------------------------------------------------

inline void set_default_device(const std::string &device)
{
    detail::check(tern_set_default_device(device.c_str()));
}
inline std::string default_device()
{
    return tern_default_device();
}
inline void manual_seed(std::uint64_t seed)
{
    tern_manual_seed(seed);
}
inline void synchronize(const std::string &device)
{
    detail::check(tern_synchronize(device.c_str()));
}

// Gradients are not recorded until the end of the enclosing block.
class NoGrad
{
  public:
    NoGrad() : block_(tern_grad_block_enter(false))
    {
    }
    ~NoGrad()
    {
        tern_grad_block_leave(&block_);
    }
    NoGrad(const NoGrad &) = delete;
    NoGrad &operator=(const NoGrad &) = delete;

  private:
    tern_grad_block block_;
};

// ---- modules ----------------------------------------------------------------------------------

namespace nn
{

class Module;

// The parameters of a module, for an optimizer or for a loop.
class Parameters
{
  public:
    explicit Parameters(const Module &module);
    const Module &module() const
    {
        return *module_;
    }
    std::vector<Tensor> list() const;

  private:
    std::shared_ptr<Module> module_;
};

// A handle of a module; copies are handles of the same module. The last handle frees the module,
// except for children, which belong to their parent. A class of the program passes its name to
// Module, adds members in order, and overrides forward.
class Module
{
  public:
    explicit Module(const char *name = "Module")
    {
        auto data = std::make_unique<Data>();
        tern_module *module = detail::given(tern_nn_module(name, &Module::run, data.get()));
        held_ = std::make_shared<Held>(module, true);
        detail::check(tern_nn_on_free(module, [](void *d) { delete static_cast<Data *>(d); }));
        data.release();
    }
    // Takes a module that C created, and owns it.
    explicit Module(tern_module *module)
        : held_(std::make_shared<Held>(detail::given(module), false))
    {
    }
    Module(const Module &) = default;
    Module &operator=(const Module &) = default;
    virtual ~Module() = default;

    virtual Tensor forward(const Tensor &x)
    {
        if (held_->own) {
            tern_fail(TERN_ERR_STATE,
                      "tern::nn::Module: %s has no Tensor forward(const Tensor &) "
                      "override",
                      tern_nn_name(get()));
            detail::fail();
        }
        return detail::made([&] { return tern_nn_forward(get(), x.get()); });
    }
    Tensor operator()(const Tensor &x)
    {
        if (!held_->own)
            return Module::forward(x);
        Calling calling(this);
        return detail::made([&] { return tern_nn_forward(get(), x.get()); });
    }

    tern_module *get() const
    {
        return held_->module;
    }
    Module &train(bool on = true)
    {
        return detail::given(tern_nn_train(get(), on)), *this;
    }
    Module &eval()
    {
        return train(false);
    }
    Module &to(const std::string &device)
    {
        return detail::given(tern_nn_to(get(), device.c_str())), *this;
    }
    Parameters parameters() const
    {
        return Parameters(*this);
    }
    std::int64_t numel() const
    {
        return tern_nn_numel(get());
    }
    void zero_grad()
    {
        detail::check(tern_nn_zero_grad(get()));
    }

    // Adds child, an object of a module class, as a member, and returns it.
    template <class M> M add(const char *name, M child)
    {
        detail::given(tern_nn_add(get(), name, give(child)));
        return child;
    }
    Tensor add_parameter(const char *name, const Tensor &x)
    {
        return Tensor(detail::given(tern_nn_add_parameter(get(), name, x.get())));
    }
    Tensor add_buffer(const char *name, const Tensor &x)
    {
        return Tensor(detail::given(tern_nn_add_buffer(get(), name, x.get())));
    }

  protected:
    // Returns the C module of child, which belongs to its parent from then on. An object of one of
    // the program's own classes is copied into it, so that C can call its forward.
    template <class M> static tern_module *give(const M &child)
    {
        Held &held = *static_cast<const Module &>(child).held_;
        held.owned = false;
        if (held.own)
            static_cast<Data *>(tern_nn_data(held.module))->object = std::make_shared<M>(child);
        return held.module;
    }

  private:
    struct Data {
        std::shared_ptr<Module> object;
    };
    struct Held {
        Held(tern_module *m, bool is_own) : module(m), own(is_own)
        {
        }
        ~Held()
        {
            if (owned)
                tern_nn_free(module);
        }
        Held(const Held &) = delete;
        Held &operator=(const Held &) = delete;
        tern_module *module;
        bool own;          // the forward of the class is called
        bool owned = true; // owned by this handle, not by a parent
    };
    // The object that is being called, while the outermost one is; it is stored nowhere else.
    struct Calling {
        explicit Calling(Module *module) : outer(now())
        {
            now() = module;
        }
        ~Calling()
        {
            now() = outer;
        }
        static Module *&now()
        {
            static thread_local Module *module = nullptr;
            return module;
        }
        Module *outer;
    };
    static tern_tensor *run(tern_module *self, tern_tensor *x);
    std::shared_ptr<Held> held_;
};

// The function that C calls: it calls forward of the object. No exception leaves it. The result is
// a view of forward's result, which belongs to the scope.
inline tern_tensor *Module::run(tern_module *self, tern_tensor *x)
{
    auto *data = static_cast<Data *>(tern_nn_data(self));
    Module *object = data->object.get();
    if (!object && Calling::now() && Calling::now()->get() == self)
        object = Calling::now();
    try {
        if (!object) {
            tern_fail(TERN_ERR_STATE, "tern::nn::Module: nobody knows the object of this module");
            return nullptr;
        }
        Tensor y = object->forward(Tensor(x));
        return tern_view(y.get(), tern_shape_of(y.get()));
    } catch (const Error &error) {
        detail::passing() = std::make_unique<Error>(error);
        tern_fail(error.status(), "%s", error.what());
    } catch (const std::exception &error) {
        tern_fail(TERN_ERR_STATE, "%s", error.what());
    } catch (...) {
        tern_fail(TERN_ERR_STATE, "tern::nn::Module: forward threw an exception");
    }
    return nullptr;
}

inline Parameters::Parameters(const Module &module) : module_(std::make_shared<Module>(module))
{
}
inline std::vector<Tensor> Parameters::list() const
{
    std::vector<tern_tensor *> all(
        static_cast<std::size_t>(tern_nn_parameter_count(module_->get())));
    tern_nn_parameters(module_->get(), all.data(), static_cast<std::int64_t>(all.size()));
    std::vector<Tensor> list;
    for (tern_tensor *x : all)
        list.emplace_back(x);
    return list;
}

// Layers. Their arguments are sizes and the option structs of C.
struct Linear : Module {
    Linear(std::int64_t in, std::int64_t out, const tern_linear_options *options = nullptr)
        : Module(tern_nn_linear(in, out, options))
    {
    }
};
struct Embedding : Module {
    Embedding(std::int64_t n, std::int64_t width, const tern_embedding_options *options = nullptr)
        : Module(tern_nn_embedding(n, width, options))
    {
    }
};
struct LayerNorm : Module {
    explicit LayerNorm(std::initializer_list<std::int64_t> shape,
                       const tern_layer_norm_options *options = nullptr)
        : LayerNorm(Shape(shape), options)
    {
    }
    explicit LayerNorm(const Shape &shape, const tern_layer_norm_options *options = nullptr)
        : Module(tern_nn_layer_norm(shape, options))
    {
    }
};
struct BatchNorm2d : Module {
    explicit BatchNorm2d(std::int64_t features, const tern_batch_norm_options *options = nullptr)
        : Module(tern_nn_batch_norm2d(features, options))
    {
    }
};
struct Conv2d : Module {
    Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel,
           const tern_conv_options *options = nullptr)
        : Module(tern_nn_conv2d(in, out, Shape(kernel), options))
    {
    }
};
struct MaxPool2d : Module {
    explicit MaxPool2d(std::int64_t kernel, const tern_max_pool_options *options = nullptr)
        : Module(tern_nn_max_pool2d(Shape(kernel), options))
    {
    }
};
struct Dropout : Module {
    explicit Dropout(double p = 0.5) : Module(make(p))
    {
    }

  private:
    static tern_module *make(double p)
    {
        tern_dropout_options options = tern_dropout_defaults();
        options.p = p;
        return tern_nn_dropout(&options);
    }
};
struct ReLU : Module {
    ReLU() : Module(tern_nn_relu())
    {
    }
};
struct Tanh : Module {
    Tanh() : Module(tern_nn_tanh())
    {
    }
};
struct GELU : Module {
    GELU() : Module(tern_nn_gelu(nullptr))
    {
    }
};
struct Flatten : Module {
    Flatten() : Module(tern_nn_flatten())
    {
    }
};
// A module that runs layers one after the other.
struct Sequential : Module {
    template <class... M> explicit Sequential(const M &...layers) : Module(make({give(layers)...}))
    {
    }

  private:
    static tern_module *make(std::initializer_list<tern_module *> layers)
    {
        return tern_nn_sequential_of(layers.begin(), static_cast<int>(layers.size()));
    }
};

} // namespace nn

// Saves and loads the parameters and buffers of a module (safetensors).
inline void save(const nn::Module &module, const std::string &path)
{
    detail::Scope scope;
    detail::check(tern_nn_save(module.get(), path.c_str(), nullptr));
}
inline void load(const nn::Module &module, const std::string &path)
{
    detail::Scope scope;
    detail::check(tern_nn_load(module.get(), path.c_str(), nullptr));
}

// ---- optimizers -------------------------------------------------------------------------------

namespace optim
{

class Optimizer
{
  public:
    // Takes an optimizer that C created, and owns it.
    explicit Optimizer(tern_optimizer *optimizer)
        : held_(detail::given(optimizer), &tern_optim_free)
    {
    }
    tern_optimizer *get() const
    {
        return held_.get();
    }
    void zero_grad()
    {
        detail::check(tern_optim_zero_grad(get()));
    }
    void step()
    {
        detail::Scope scope;
        detail::check(tern_optim_step(get()));
    }
    double lr() const
    {
        return tern_optim_get_lr(get());
    }
    void set_lr(double lr)
    {
        detail::check(tern_optim_set_lr(get(), lr));
    }

  private:
    std::shared_ptr<tern_optimizer> held_;
};

// A learning rate schedule of an optimizer, which it keeps alive.
class LRScheduler
{
  public:
    // Takes a scheduler of this optimizer that C created: C has schedulers that have no class here.
    LRScheduler(const Optimizer &optimizer, tern_lr_scheduler *scheduler)
        : optimizer_(optimizer), held_(detail::given(scheduler), &tern_lr_scheduler_free)
    {
    }
    tern_lr_scheduler *get() const
    {
        return held_.get();
    }
    void step()
    {
        detail::check(tern_lr_scheduler_step(get()));
    }
    double last_lr(int group = 0) const
    {
        return tern_lr_scheduler_get_last_lr(get(), group);
    }

  private:
    Optimizer optimizer_;
    std::shared_ptr<tern_lr_scheduler> held_;
};
struct StepLR : LRScheduler {
    StepLR(const Optimizer &optimizer, std::int64_t step_size, double gamma = 0.1)
        : LRScheduler(optimizer, tern_lr_scheduler_step_lr(optimizer.get(), step_size, gamma))
    {
    }
};
struct ExponentialLR : LRScheduler {
    ExponentialLR(const Optimizer &optimizer, double gamma)
        : LRScheduler(optimizer, tern_lr_scheduler_exponential_lr(optimizer.get(), gamma))
    {
    }
};
struct CosineAnnealingLR : LRScheduler {
    CosineAnnealingLR(const Optimizer &optimizer, std::int64_t t_max, double eta_min = 0)
        : LRScheduler(optimizer,
                      tern_lr_scheduler_cosine_annealing_lr(optimizer.get(), t_max, eta_min))
    {
    }
};

// Options with their defaults, as tern_x_defaults() returns them: a field that is 0 means 0.
#define TERN_OPTION(TYPE, FIELD)                                                                   \
    Options &FIELD(TYPE value)                                                                     \
    {                                                                                              \
        return c.FIELD = value, *this;                                                             \
    }
#define TERN_OPTIMIZER(NAME, WORD, ...)                                                            \
    struct NAME : Optimizer {                                                                      \
        struct Options {                                                                           \
            tern_##WORD##_options c = tern_##WORD##_defaults();                                    \
            __VA_ARGS__                                                                            \
        };                                                                                         \
        NAME(const nn::Parameters &parameters, double lr) : NAME(parameters, lr, Options())        \
        {                                                                                          \
        }                                                                                          \
        NAME(const nn::Parameters &parameters, double lr, const Options &options)                  \
            : Optimizer(tern_optim_##WORD(parameters.module().get(), lr, &options.c))              \
        {                                                                                          \
        }                                                                                          \
    };
TERN_OPTIMIZER(SGD, sgd,
               TERN_OPTION(double, momentum) TERN_OPTION(double, weight_decay)
                   TERN_OPTION(bool, nesterov))
TERN_OPTIMIZER(Adam, adam,
               TERN_OPTION(double, beta1) TERN_OPTION(double, beta2)
                   TERN_OPTION(double, weight_decay) TERN_OPTION(double, eps)
                       TERN_OPTION(bool, amsgrad))
TERN_OPTIMIZER(AdamW, adamw,
               TERN_OPTION(double, beta1) TERN_OPTION(double, beta2)
                   TERN_OPTION(double, weight_decay) TERN_OPTION(double, eps)
                       TERN_OPTION(bool, amsgrad))
#undef TERN_OPTIMIZER

} // namespace optim

// ---- mixed precision ---------------------------------------------------------------------------

namespace amp
{

// Scales losses so that small gradients in float16 do not become 0, and skips steps whose gradients
// are not finite.
class GradScaler
{
  public:
    explicit GradScaler(double init_scale = 65536, double growth_factor = 2,
                        double backoff_factor = 0.5, int growth_interval = 2000,
                        bool enabled = true)
        : held_(make(init_scale, growth_factor, backoff_factor, growth_interval, enabled),
                &tern_amp_free)
    {
    }
    tern_scaler *get() const
    {
        return held_.get();
    }
    Tensor scale(const Tensor &loss) const
    {
        return detail::made([&] { return tern_amp_scale(get(), loss.get()); });
    }
    void unscale_(const optim::Optimizer &optimizer)
    {
        detail::check(tern_amp_unscale_(get(), optimizer.get()));
    }
    void step(const optim::Optimizer &optimizer)
    {
        detail::Scope scope;
        detail::check(tern_amp_step(get(), optimizer.get()));
    }
    void update()
    {
        detail::check(tern_amp_update(get()));
    }
    double get_scale() const
    {
        return tern_amp_get_scale(get());
    }

  private:
    static tern_scaler *make(double init_scale, double growth_factor, double backoff_factor,
                             int growth_interval, bool enabled)
    {
        tern_grad_scaler_options options = tern_grad_scaler_defaults();
        options.init_scale = init_scale;
        options.growth_factor = growth_factor;
        options.backoff_factor = backoff_factor;
        options.growth_interval = growth_interval;
        options.disabled = !enabled;
        return detail::given(tern_amp_grad_scaler(&options));
    }
    std::shared_ptr<tern_scaler> held_;
};

} // namespace amp

// ---- data -------------------------------------------------------------------------------------

namespace data
{

// A handle of a data set; copies are handles of the same data set.
class Dataset
{
  public:
    // Takes a data set that C created, and owns it.
    explicit Dataset(tern_dataset *dataset) : held_(detail::given(dataset), &tern_dataset_free)
    {
    }
    tern_dataset *get() const
    {
        return held_.get();
    }
    std::int64_t size() const
    {
        return tern_dataset_length(get());
    }

  private:
    std::shared_ptr<tern_dataset> held_;
};

// A data set whose item i is row i of each tensor.
struct TensorDataset : Dataset {
    template <class... T>
    explicit TensorDataset(const T &...tensors) : Dataset(make({tensors.get()...}))
    {
    }

  private:
    static tern_dataset *make(std::initializer_list<tern_tensor *> tensors)
    {
        return tern_data_tensor_dataset_of(tensors.begin(), static_cast<int>(tensors.size()));
    }
};

// Splits a data set at random: into parts of lengths[k] items, or of those fractions of the items
// if the lengths add up to 1.
inline std::vector<Dataset> random_split(const Dataset &dataset, const std::vector<double> &lengths,
                                         std::uint64_t seed = 0)
{
    std::vector<tern_dataset *> parts(lengths.size());
    detail::check(tern_data_random_split(dataset.get(), lengths.data(),
                                         static_cast<int>(lengths.size()), seed, parts.data()));
    std::vector<Dataset> held;
    for (tern_dataset *part : parts)
        held.emplace_back(part);
    return held;
}

// Loads batches of a data set. for (auto [x, y] : loader) runs through an epoch of batches with two
// tensors; batches<3>() is for three. Leaving a loop early ends its epoch.
class Loader
{
  public:
    struct Options {
        tern_loader_options c = tern_loader_defaults();
        std::string place;
        TERN_OPTION(std::int64_t, batch_size)
        TERN_OPTION(bool, shuffle)
        TERN_OPTION(bool, drop_last)
        TERN_OPTION(int, num_workers)
        TERN_OPTION(std::uint64_t, seed)
        Options &device(const std::string &value)
        {
            return place = value, *this;
        }
    };
    Loader(const Dataset &dataset) : Loader(dataset, Options())
    {
    }
    Loader(const Dataset &dataset, const Options &options) : dataset_(dataset)
    {
        tern_loader_options c = options.c;
        c.device = options.place.empty() ? nullptr : options.place.c_str();
        held_ = std::shared_ptr<tern_loader>(detail::given(tern_data_loader(dataset.get(), &c)),
                                             &tern_loader_free);
    }
    tern_loader *get() const
    {
        return held_.get();
    }
    std::int64_t size() const
    {
        return tern_loader_length(get());
    }

    struct End {
    };
    template <std::size_t N> class Iterator
    {
      public:
        explicit Iterator(tern_loader *loader) : batch_(new tern_batch{}, &Iterator::free)
        {
            batch_->from_ = loader;
            ++*this;
        }
        std::array<Tensor, N> operator*() const
        {
            if (batch_->count != static_cast<int>(N)) {
                tern_fail(TERN_ERR_ARGUMENT, "tern::data::Loader: a batch has %d tensors, not %d",
                          batch_->count, static_cast<int>(N));
                detail::fail();
            }
            std::array<Tensor, N> tensors;
            for (std::size_t i = 0; i < N; i++)
                tensors[i] = Tensor(batch_->tensors[i]);
            return tensors;
        }
        Iterator &operator++()
        {
            more_ = tern_batch_next(batch_.get());
            if (!more_)
                detail::check(tern_last_status());
            return *this;
        }
        bool operator!=(End) const
        {
            return more_;
        }

      private:
        static void free(tern_batch *batch)
        {
            tern_batch_end(batch);
            delete batch;
        }
        std::unique_ptr<tern_batch, void (*)(tern_batch *)> batch_;
        bool more_ = false;
    };
    template <std::size_t N> struct Batches {
        tern_loader *loader;
        Iterator<N> begin() const
        {
            return Iterator<N>(loader);
        }
        End end() const
        {
            return {};
        }
    };
    template <std::size_t N> Batches<N> batches() const
    {
        return {get()};
    }
    Iterator<2> begin() const
    {
        return Iterator<2>(get());
    }
    End end() const
    {
        return {};
    }

  private:
    Dataset dataset_;
    std::shared_ptr<tern_loader> held_;
};
#undef TERN_OPTION

// The same under PyTorch's names.
using DataLoader = Loader;
using DataLoaderOptions = Loader::Options;

} // namespace data
} // namespace tern
#endif
