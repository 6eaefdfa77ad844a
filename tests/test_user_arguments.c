/* test_user_arguments.c -- arguments of kernels of the program's own: those that the parameters take, as the text shows them,
 * and no others. */
#include "support.h"
#include "user_compiles.h"
#include <stdio.h>

/* Parameters as they may be written, and what each takes: 'f' and 'i' a tensor, of floats and of ints, 'l' local memory, 4 or
 * 8 an integer of so many bytes, 'v' a float. */
static const struct {
    const char *parameters;
    char takes[5];
} parameter_lists[] = {
    {"__global float *x, int n, long m, __local float *s", {'f', 4, 8, 'l'}},
    {"local int *s, global const int *restrict x, unsigned n, ulong m", {'l', 'i', 4, 8}},
    {"const __global float * const x, const unsigned int n, float v, unsigned long int m",
     {'f', 4, 'v', 8}},
    {"__global float x[], __constant float *c, uint const n, long const m", {'f', 'f', 4, 8}},
    {"__local float s[], __local float t[8], local float u[4][2], const __local int v[]",
     {'l', 'l', 'l', 'l'}},
    {"__constant float c[], const __constant int d[3], constant float2 e[][4], __global int x[2]",
     {'f', 'i', 'f', 'i'}},
    {"__local float (*s)[8], __constant float (*c)[2], __global float (*x)[4], long const m",
     {'l', 'f', 'f', 8}},
};

static tern_kernel_arg argument_of(char kind, tern_tensor *x, tern_tensor *whole)
{
    return kind == 'f'   ? TERN_ARG_TENSOR(x)
           : kind == 'i' ? TERN_ARG_TENSOR(whole)
           : kind == 'l' ? TERN_ARG_LOCAL(64)
           : kind == 'v' ? TERN_ARG_FLOAT(1)
           : kind == 4   ? TERN_ARG_INT(1)
                         : TERN_ARG_LONG(1);
}

static void arguments_of_another_kind_are_refused(void **state)
{
    static const char kinds[] = {'f', 'i', 'l', 4, 8, 'v'};
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        for (size_t l = 0; l < sizeof parameter_lists / sizeof *parameter_lists; l++)
            TERN_SCOPE {
                char source[256];
                tern_tensor *x = tern_zeros(TERN_SHAPE(4), TERN_F32, device),
                            *whole = tern_to_dtype(x, TERN_I32);
                snprintf(source, sizeof source, "__kernel void takes(%s)\n{ }\n",
                         parameter_lists[l].parameters);
                tern_kernel *k =
                    compiles(device) ? tern_kernel_compile(device, source, "takes") : NULL;
                for (int i = 0; k && i < 4; i++)
                    for (size_t given = 0; given < sizeof kinds; given++) {
                        const char *takes = parameter_lists[l].takes;
                        tern_kernel_arg args[4];
                        for (int j = 0; j < 4; j++)
                            args[j] = argument_of(j == i ? kinds[given] : takes[j], x, whole);
                        tern_status status = tern_kernel_launch_args(k, TERN_GRID(1), args, 4);
                        if (kinds[given] == takes[i]) {
                            assert_ok(status);
                            continue;
                        }
                        char text[64];
                        snprintf(text, sizeof text, "argument %d of kernel takes is ", i);
                        assert_int_equal(status, TERN_ERR_ARGUMENT);
                        assert_error(TERN_ERR_ARGUMENT, text);
                    }
                tern_kernel_free(k);
            }
    }
}

/* Each kind of argument by a name, and parameters with those that they take, of which the first is passed while another
 * parameter is tried. */
static const char *const argument_names[] = {
    "float32", "float64", "float16", "bfloat16", "int32",  "int64",  "uint8",
    "bool",    "int8",    "int16",   "uint16",   "uint32", "uint64", "float8_e4m3fn",
    "int",     "long",    "float",   "double",   "bits4",  "bits8",  "local"};
enum { ARGUMENTS = sizeof argument_names / sizeof *argument_names, TENSORS = 14 };
#define BYTES1 " uint8 bool int8 float8_e4m3fn "
#define BYTES2 " uint16 int16 float16 bfloat16 "
#define ANY4   " int32 uint32 float32 "
#define ANY8   " int64 uint64 float64 "
static const struct {
    const char *text, *takes;
} one_parameter[] = {
    {"__global float *", " float32 "},
    {"__global const float4 *restrict", " float32 "},
    {"__global double *", " float64 "},
    {"__global half *", " float16 "},
    {"volatile __global int *", " int32 uint32 "},
    {"__global unsigned int *", " int32 uint32 "},
    {"__global long2 *", " int64 uint64 "},
    {"__global const unsigned long int *", " int64 uint64 "},
    {"__global short *", BYTES2},
    {"__global unsigned short int *", BYTES2},
    {"__global uchar4 *", BYTES1},
    {"__global unsigned char *", BYTES1},
    {"__global void *", BYTES1 BYTES2 ANY4 ANY8},
    {"__global struct pair *", BYTES1 BYTES2 ANY4 ANY8},
    {"__global own *", BYTES1 BYTES2 ANY4 ANY8},
    {"__global ONCE *", " float16 "},
    {"__global TWICE *", BYTES1 BYTES2 ANY4 ANY8},
    {"__local float *", " local "},
    {"int", " int bits4 "},
    {"const uint", " int bits4 "},
    {"unsigned long", " long bits8 "},
    {"float", " float bits4 "},
    {"double", " double bits8 "},
};
enum { PARAMETERS = sizeof one_parameter / sizeof *one_parameter };

static bool takes(int parameter, int argument)
{
    char word[32];
    snprintf(word, sizeof word, " %s ", argument_names[argument]);
    return strstr(one_parameter[parameter].takes, word) != NULL;
}

/* All of them, of `device`; freed with the scope. */
static void make_one_of_each(tern_kernel_arg *args, const char *device)
{
    const tern_kernel_arg others[] = {TERN_ARG_INT(1),
                                      TERN_ARG_LONG(1),
                                      TERN_ARG_FLOAT(1),
                                      TERN_ARG_DOUBLE(1),
                                      {.kind = TERN_KERNEL_ARG_BYTES, .bytes = 4},
                                      {.kind = TERN_KERNEL_ARG_BYTES, .bytes = 8},
                                      TERN_ARG_LOCAL(64)};
    for (int i = 0; i < TENSORS; i++) {
        tern_dtype dtype = TERN_F32;
        while (strcmp(tern_dtype_name(dtype), argument_names[i]) != 0)
            dtype++;
        args[i] = TERN_ARG_TENSOR(tern_zeros(TERN_SHAPE(64), dtype, device));
    }
    memcpy(args + TENSORS, others, sizeof others);
}

static tern_kernel *compile_parameters(const char *device)
{
    char text[2048] = "#define ONCE half\n#define TWICE float\n#undef TWICE\n#define TWICE half\n"
                      "struct pair { float a, b; };\ntypedef float own;\n__kernel void many(";
    for (int i = 0; i < PARAMETERS; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s p%d", i ? ", " : "",
                 one_parameter[i].text, i);
    strcat(text, ") { }\n");
    return tern_kernel_compile(device, text, "many");
}

static void arguments_are_of_the_parameters_types(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_kernel *k = compiles(device) ? compile_parameters(device) : NULL;
        tern_kernel_arg all[ARGUMENTS], args[PARAMETERS];
        make_one_of_each(all, device);
        for (int i = 0; k && i < PARAMETERS; i++)
            for (int j = 0, first; j < ARGUMENTS; j++) {
                for (int p = 0; p < PARAMETERS; p++) {
                    for (first = 0; !takes(p, first);)
                        first++;
                    args[p] = all[p == i ? j : first];
                }
                tern_status status = tern_kernel_launch_args(k, TERN_GRID(1), args, PARAMETERS);
                if ((status == TERN_OK) != takes(i, j))
                    fail_msg("%s on %s for \"%s\": %s %s", argument_names[j], device,
                             one_parameter[i].text, tern_status_name(status), tern_last_error());
                tern_clear_error();
            }
        tern_kernel_free(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(arguments_of_another_kind_are_refused),
        TEST(arguments_are_of_the_parameters_types),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
