/* python.cpp -- the functions of C that the Python module calls by ctypes, so that one build serves
 * every version of Python. Each returns 0, or a code for the exception that was thrown, whose text
 * torch_tern_error returns. */
#include "torch_tern.h"
#include <cstring>
#include <sstream>
#include <torch/version.h>

using namespace torch_tern;

static thread_local std::string error_text;
static thread_local std::string result_text;

enum { ok = 0, runtime_error, value_error, out_of_memory, not_implemented };

template <class F> static int guarded(F function)
{
    try {
        function();
        return ok;
    } catch (const c10::OutOfMemoryError &error) {
        error_text = error.what_without_backtrace();
        return out_of_memory;
    } catch (const c10::NotImplementedError &error) {
        error_text = error.what_without_backtrace();
        return not_implemented;
    } catch (const c10::ValueError &error) {
        error_text = error.what_without_backtrace();
        return value_error;
    } catch (const c10::Error &error) {
        error_text = error.what_without_backtrace();
    } catch (const std::exception &error) {
        error_text = error.what();
    }
    return runtime_error;
}

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const char *torch_tern_error()
{
    return error_text.c_str();
}

/* The version of PyTorch that this was built with: its C++ classes are no other version's. */
EXPORT const char *torch_tern_built_with()
{
    return TORCH_VERSION;
}

EXPORT int torch_tern_register()
{
    return guarded(register_operations_by_name);
}

EXPORT int torch_tern_choose_devices(const char *list)
{
    return guarded([&] { choose_devices(list); });
}

EXPORT int torch_tern_device_count(int *count)
{
    return guarded([&] { *count = device_count(); });
}

EXPORT int torch_tern_current_device()
{
    return current_device();
}

EXPORT int torch_tern_set_device(int index)
{
    return guarded([&] { exchange_device(index); });
}

/* tern's string of a device, "opencl:0". */
EXPORT int torch_tern_device_string(int index, const char **text)
{
    return guarded([&] { *text = device_name(index); });
}

EXPORT int torch_tern_device_description(int index, const char **text)
{
    return guarded([&] {
        *text = tern_device_name(device_name(index));
        check(*text != nullptr, "get_device_name");
    });
}

EXPORT int torch_tern_synchronize(int index)
{
    return guarded([&] { check(tern_synchronize(device_name(index)), "synchronize"); });
}

EXPORT int torch_tern_finish_backward_passes()
{
    return guarded(finish_backward_passes);
}

EXPORT int torch_tern_empty_cache(int index)
{
    return guarded([&] { check(tern_empty_cache(device_name(index)), "empty_cache"); });
}

EXPORT int torch_tern_reset_peak(int index)
{
    return guarded([&] {
        check(tern_reset_peak_memory_stats(device_name(index)), "reset_peak_memory_stats");
    });
}

EXPORT int torch_tern_set_memory_fraction(double fraction, int index)
{
    return guarded([&] {
        check(tern_set_per_process_memory_fraction(fraction, device_name(index)),
              "set_per_process_memory_fraction");
    });
}

/* allocated, its peak, reserved, its peak, launches, memory in all, memory that is free. */
EXPORT int torch_tern_memory(int index, uint64_t *numbers)
{
    return guarded([&] {
        tern_memory_stats stats{};
        tern_device_info info{};
        check(tern_memory_get_stats(device_name(index), &stats), "memory_stats");
        check(tern_device_get_info(device_name(index), &info), "get_device_properties");
        numbers[0] = stats.allocated;
        numbers[1] = stats.allocated_peak;
        numbers[2] = stats.reserved;
        numbers[3] = stats.reserved_peak;
        numbers[4] = stats.launches;
        numbers[5] = info.memory_total;
        numbers[6] = info.memory_free;
    });
}

EXPORT int torch_tern_manual_seed(int index, uint64_t seed)
{
    return guarded([&] {
        at::Generator generator = default_generator(index);
        generator.set_current_seed(seed);
    });
}

EXPORT int torch_tern_get_rng_state(int index, uint64_t *seed, uint64_t *offset)
{
    return guarded([&] {
        const at::Generator &generator = default_generator(index);
        *seed = generator.current_seed();
        *offset = generator.get_offset();
    });
}

EXPORT int torch_tern_set_rng_state(int index, uint64_t seed, uint64_t offset)
{
    return guarded([&] {
        at::Generator generator = default_generator(index);
        generator.set_current_seed(seed);
        generator.set_offset(offset);
    });
}

/* ---- recorded steps -------------------------------------------------------------------------- */

EXPORT int torch_tern_step_new(int (*callback)(int), int warmup, int max_recordings, void **step)
{
    return guarded([&] { *step = new_step(callback, warmup, max_recordings); });
}

EXPORT int torch_tern_step_free(void *step)
{
    return guarded([&] { free_step(step); });
}

EXPORT int torch_tern_step_reset(void *step)
{
    return guarded([&] { reset_step(step); });
}

EXPORT void torch_tern_step_error(void *step, const char *text)
{
    set_step_error(step, text);
}

/* Calls that ran the function, that replayed, recordings, launches of the latest replay; why calls
 * run the function, or "". */
EXPORT int torch_tern_step_stats(void *step, int64_t *numbers, const char **reason)
{
    return guarded([&] {
        const tern_step_stats stats = stats_of_step(step);
        numbers[0] = stats.ran;
        numbers[1] = stats.replayed;
        numbers[2] = stats.recordings;
        numbers[3] = stats.launches;
        result_text = stats.reason ? stats.reason : "";
        *reason = result_text.c_str();
    });
}

/* lr, weight_decay, beta1, beta2, eps, momentum, dampening of the fused optimizer whose first
 * parameter is at address. */
EXPORT int torch_tern_set_optimizer(const void *address, const double *n)
{
    return guarded([&] { set_optimizer(address, {n[0], n[1], n[2], n[3], n[4], n[5], n[6]}); });
}

/* Lines of "operation TAB served TAB fallbacks TAB reason". */
EXPORT const char *torch_tern_counters()
{
    std::ostringstream lines;
    each_counter([&](Counter &counter) {
        if (counter.served || counter.fallbacks)
            lines << counter.operation << '\t' << counter.served << '\t' << counter.fallbacks
                  << '\t' << counter.reason.substr(0, counter.reason.find('\n')) << '\n';
    });
    result_text = lines.str();
    return result_text.c_str();
}

EXPORT void torch_tern_reset_counters()
{
    each_counter([](Counter &counter) { counter.served = counter.fallbacks = 0; });
}

EXPORT const char *torch_tern_operations_by_name()
{
    result_text.clear();
    for (const auto &name : operations_by_name())
        result_text += name + '\n';
    return result_text.c_str();
}
