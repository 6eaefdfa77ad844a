/* test_report.c -- reports: lines, CSV, curves, event files. */
#include "support.h"
#include "folder.h"
#include <math.h>
#include <string.h>
#include <tern/report.h>

#define at in_folder

static void rows_and_columns(void **state)
{
    size_t n;
    (void)state;
    tern_report *r = tern_report_new(at("csv"), &(tern_report_options){.csv = true, .quiet = true});
    assert_non_null(r);
    for (int step = 1; step <= 3; step++) {
        tern_report_value(r, "loss", step, 1.0 / step);
        assert_int_equal(tern_report_step(r, step, 10), TERN_OK);
        if (step == 2) /* a column that comes later, of a step whose row may be written */
            assert_int_equal(tern_report_value(r, "accuracy", step, 0.5), TERN_OK);
    }
    assert_true(tern_report_rate(r) > 0);
    assert_int_equal(tern_report_value(r, "loss", 2, 0), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "step 2 of loss after step 3");
    assert_int_equal(tern_report_value(r, "a,b", 4, 0), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "commas");
    assert_int_equal(tern_report_close(r), TERN_OK);
    char *text = read_file(at("csv/metrics.csv"), &n);
    double time[3];
    int matched = 0;
    assert_int_equal(
        sscanf(text, "step,time,loss,accuracy\n1,%lf,1,\n2,%lf,0.5,0.5\n3,%lf,0.333333333,\n%n",
               &time[0], &time[1], &time[2], &matched),
        3);
    assert_int_equal(matched, n);
    free(text);
}

static void curves(void **state)
{
    size_t n;
    (void)state;
    tern_report *r = tern_report_new(at("svg"), &(tern_report_options){.svg = true, .quiet = true});
    for (int step = 0; step < 10000; step++)
        tern_report_value(r, "train/loss", step, step == 7 ? (double)NAN : step % 10);
    tern_report_value(r, "one", 5, 3);
    tern_report_value(r, "no number", 5, NAN);
    assert_int_equal(tern_report_compare(r, "train/loss", 20, "a < b & c"), TERN_OK);
    assert_int_equal(tern_report_close(r), TERN_OK);
    char *text = read_file(at("svg/train_loss.svg"), &n);
    assert_true(n < 100000); /* many points are drawn as means */
    assert_non_null(strstr(text, "<polyline"));
    assert_non_null(strstr(text, "a &lt; b &amp; c"));
    assert_null(strstr(text, "nan"));
    free(text);
    text = read_file(at("svg/no_number.svg"), &n);
    assert_true(!strstr(text, "nan") && !strstr(text, "inf"));
    free(text);
    free(read_file(at("svg/one.svg"), &n));
}

/* Castagnoli's polynomial by its table, apart from the library's loop over bits. */
static uint32_t crc(const unsigned char *data, size_t n)
{
    uint32_t table[256], c = 0xffffffff;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int k = 0; k < 8; k++)
            table[i] = table[i] & 1 ? table[i] >> 1 ^ 0x82F63B78 : table[i] >> 1;
    }
    for (size_t i = 0; i < n; i++)
        c = table[(c ^ data[i]) & 255] ^ c >> 8;
    c = ~c;
    return (c >> 15 | c << 17) + 0xa282ead8;
}

static uint64_t number(const unsigned char *from, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
        value = value << 8 | from[i];
    return value;
}

static void events(void **state)
{
    char path[4400];
    size_t n, i = 0, records = 0;
    (void)state;
    tern_report *r =
        tern_report_new(at("tb"), &(tern_report_options){.tensorboard = true, .quiet = true});
    snprintf(path, sizeof path, "%s", tern_report_path(r, "tensorboard"));
    assert_null(tern_report_path(r, "csv"));
    assert_non_null(strstr(path, "tfevents"));
    for (int step = 0; step < 300; step += 100)
        tern_report_value(r, "loss", step, 0.25 * step);
    assert_int_equal(tern_report_close(r), TERN_OK);
    unsigned char *bytes = (unsigned char *)read_file(path, &n);
    for (; i < n; records++) {
        size_t length = (size_t)number(bytes + i, 8);
        const unsigned char *data = bytes + i + 12;
        assert_true(i + 16 + length <= n);
        assert_int_equal(number(bytes + i + 8, 4), crc(bytes + i, 8));
        assert_int_equal(number(data + length, 4), crc(data, length));
        assert_int_equal(data[0], 0x09); /* wall_time */
        if (records == 3) {              /* step 200, loss 50 */
            assert_int_equal(data[9], 0x10);
            assert_int_equal(data[10] + 128 * data[11] - 128, 200);
            assert_int_equal(data[12], 0x2a);
            assert_memory_equal(data + 16, "\x0a\x04loss\x15\x00\x00\x48\x42", 11);
        }
        i += 16 + length;
    }
    assert_int_equal(i, n);
    assert_int_equal(records, 4);
    free(bytes);
}

static void lines(void **state)
{
    (void)state;
    FILE *stream = fopen(at("lines"), "wb+");
    tern_report *r =
        tern_report_new(NULL, &(tern_report_options){.steps = 2, .unit = "rows", .stream = stream});
    tern_report_value(r, "loss", 1, 0.5);
    tern_report_step(r, 1, 8);
    tern_report_value(r, "loss", 2, 0.25);
    tern_report_step(r, 2, 8);
    tern_report_compare(r, "loss", 0.3, "elsewhere");
    assert_int_equal(tern_report_close(r), TERN_OK);
    rewind(stream);
    char text[1024] = "";
    size_t n = fread(text, 1, sizeof text - 1, stream);
    fclose(stream);
    assert_true(n > 0 && strncmp(text, "step 2/2  ", 10) == 0); /* the last step is always told */
    assert_non_null(strstr(text, "rows/s  loss 0.25\n"));
    assert_non_null(strstr(text, "2 steps in 0:00"));
    assert_non_null(strstr(text, "loss 0.25; elsewhere: 0.3\n"));
}

static void what_cannot_be_written(void **state)
{
    (void)state;
    tern_report_options o = {.csv = true, .quiet = true};
    assert_null(tern_report_new(at("no/such/folder"), &o));
    assert_error(TERN_ERR_IO, "no/such/folder");
    assert_null(tern_report_new(NULL, &o));
    assert_error(TERN_ERR_ARGUMENT, "no folder");
    assert_int_equal(tern_report_value(NULL, "a", 1, 1), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "report");
    assert_int_equal(tern_report_close(NULL), TERN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(rows_and_columns), TEST(curves), TEST(events),
                                       TEST(lines), TEST(what_cannot_be_written)};
    if (folder_make() != 0)
        return 1;
    int failures = test_main(tests, sizeof tests / sizeof *tests);
    remove_tree(folder);
    return failures;
}
