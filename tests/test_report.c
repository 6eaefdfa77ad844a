/* test_report.c -- reports: lines, CSV, curves, event files. */
#define _GNU_SOURCE /* posix_openpt */
#include "support.h"
#include "folder.h"
#include <math.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
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

/* ---- a training that goes on --------------------------------------------------------------- */

/* Steps of a run with their losses, the step itself, and of an evaluation every second one. */
static void run_steps(const char *name, int from, int to)
{
    tern_report *r =
        tern_report_new(at(name), &(tern_report_options){.csv = true, .svg = true, .quiet = true});
    assert_non_null(r);
    for (int step = from; step <= to; step++) {
        tern_report_value(r, "loss", step, 1.0 / step);
        if (step % 2 == 0)
            tern_report_value(r, "eval/accuracy", step, step);
        if (step >= 6)
            tern_report_value(r, "later", step, -step);
        assert_int_equal(tern_report_step(r, step, 10), TERN_OK);
    }
    assert_int_equal(tern_report_close(r), TERN_OK);
}

/* Its rows are steps 1 to `steps`, each once, with what was given at them, and times do not fall. */
static void check_rows(const char *path, int steps)
{
    size_t n;
    char *text = read_file(at(path), &n), *line = strchr(text, '\n');
    double before = -1, time, loss;
    int step = 0, at_step;
    assert_int_equal(strncmp(text, "step,time,loss,eval/accuracy", 28), 0);
    for (; line && line[1]; line = strchr(line + 1, '\n')) {
        assert_int_equal(sscanf(line + 1, "%d,%lf,%lf", &at_step, &time, &loss), 3);
        assert_int_equal(at_step, ++step);
        assert_true(fabs(loss - 1.0 / step) < 1e-6 && time >= before);
        before = time;
    }
    assert_int_equal(step, steps);
    free(text);
}

static int points_of(const char *path)
{
    size_t n;
    char *text = read_file(at(path), &n), *c = strstr(text, "points=\"");
    int points = 0;
    for (assert_non_null(c), c += 8; *c && *c != '"'; c++)
        points += *c == ',';
    free(text);
    return points;
}

static void a_resumed_report_goes_on(void **state)
{
    (void)state;
    run_steps("goes_on", 1, 5);
    run_steps("goes_on", 6, 6); /* with a new column */
    check_rows("goes_on/metrics.csv", 6);
    assert_int_equal(points_of("goes_on/loss.svg"), 6);
    assert_int_equal(points_of("goes_on/eval_accuracy.svg"), 3);
    run_steps("goes_on", 4, 8); /* from an older snapshot: what came after it is done again */
    check_rows("goes_on/metrics.csv", 8);
    assert_int_equal(points_of("goes_on/loss.svg"), 8);
    run_steps("goes_on", 1, 3); /* from the beginning */
    check_rows("goes_on/metrics.csv", 3);
    assert_int_equal(points_of("goes_on/loss.svg"), 3);
}

/* A report that comes to no step leaves the file as it was. */
static void a_report_without_steps_leaves_the_rows(void **state)
{
    (void)state;
    run_steps("left", 1, 3);
    tern_report *r =
        tern_report_new(at("left"), &(tern_report_options){.csv = true, .quiet = true});
    check_rows("left/metrics.csv", 3);
    tern_report_close(r);
    check_rows("left/metrics.csv", 3);
}

/* Of a program that was killed the last row may be cut anywhere. */
static void rows_that_were_cut_are_left_out(void **state)
{
    (void)state;
    run_steps("cut", 1, 4);
    size_t n;
    char *text = read_file(at("cut/metrics.csv"), &n);
    size_t third = (size_t)(strstr(text, "\n4,") - text) + 1;
    for (size_t cut = third; cut < n; cut++) {
        FILE *f = fopen(at("cut/metrics.csv"), "wb");
        fwrite(text, 1, cut, f);
        fclose(f);
        run_steps("cut", 4, 5);
        check_rows("cut/metrics.csv", 5);
    }
    free(text);
}

static void a_file_of_others_is_left_alone(void **state)
{
    (void)state;
    size_t n;
    mkdir(at("others"), 0777);
    FILE *f = fopen(at("others/metrics.csv"), "wb");
    fputs("name,price\nbread,2\n", f);
    fclose(f);
    assert_null(tern_report_new(at("others"), &(tern_report_options){.csv = true}));
    assert_error(TERN_ERR_ARGUMENT, "others/metrics.csv");
    char *text = read_file(at("others/metrics.csv"), &n);
    assert_string_equal(text, "name,price\nbread,2\n");
    free(text);
}

/* ---- terminals ----------------------------------------------------------------------------- */

static void set_width(int terminal, int columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    assert_int_equal(ioctl(terminal, TIOCSWINSZ, &size), 0);
}

/* What was shown since; the longest line of it, in characters. */
static int longest_line(int terminal)
{
    static char text[65536];
    ssize_t n = read(terminal, text, sizeof text - 1);
    int longest = 0, length = 0;
    assert_true(n > 0);
    for (ssize_t i = 0; i < n; i++) {
        if (text[i] == '\r' || text[i] == '\n')
            length = 0;
        else if (text[i] == '\033')
            i += 2; /* "[K" */
        else
            length += (text[i] & 0xc0) != 0x80;
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* A line is cut to the window as it is when the line is shown. */
static void a_line_of_progress_fits_the_terminal(void **state)
{
    (void)state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
        skip();
    set_width(terminal, 80);
    FILE *stream = fopen(ptsname(terminal), "wb");
    assert_non_null(stream);
    tern_report *r = tern_report_new(
        NULL, &(tern_report_options){.stream = stream, .steps = 100000, .interval = 1e-9});
    int step = 1;
    for (int names = 0; names < 12; names++) {
        char name[64];
        snprintf(name, sizeof name, "validation/m\303\251trique_%d", names);
        tern_report_value(r, name, 1, 1.0 / 3);
        for (int columns = 40; columns <= 200; columns += 7, step++) {
            set_width(terminal, columns);
            tern_report_step(r, step, 1);
            int longest = longest_line(terminal);
            assert_in_range(longest, names < 8 ? 10 : columns - 1, columns);
        }
    }
    set_width(terminal, 0); /* not known: 80 */
    tern_report_step(r, step, 1);
    assert_in_range(longest_line(terminal), 79, 80);
    tern_report_close(r);
    fclose(stream);
    close(terminal);
}

/* In a file or a pipe there is no line of progress but the last step's, unless an interval asks for them. */
static void a_file_gets_no_lines_of_progress(void **state)
{
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        char *text = NULL;
        size_t n = 0;
        FILE *stream = fopen(at("lines"), "w+b");
        tern_report *r = tern_report_new(
            NULL, &(tern_report_options){.stream = stream, .steps = 5, .interval = asked * 1e-9});
        for (int step = 1; step <= 5; step++)
            tern_report_step(r, step, 1);
        tern_report_close(r);
        fclose(stream);
        text = read_file(at("lines"), &n);
        int lines = 0;
        for (const char *p = text; (p = strstr(p, "step ")); p++)
            lines += p == text || p[-1] == '\n';
        assert_int_equal(lines, asked ? 5 : 1);
        assert_non_null(strstr(text, "step 5/5"));
        assert_non_null(strstr(text, "5 steps in "));
        free(text);
    }
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
    const struct CMUnitTest tests[] = {TEST(rows_and_columns),
                                       TEST(curves),
                                       TEST(events),
                                       TEST(lines),
                                       TEST(a_resumed_report_goes_on),
                                       TEST(a_report_without_steps_leaves_the_rows),
                                       TEST(rows_that_were_cut_are_left_out),
                                       TEST(a_file_of_others_is_left_alone),
                                       TEST(a_line_of_progress_fits_the_terminal),
                                       TEST(a_file_gets_no_lines_of_progress),
                                       TEST(what_cannot_be_written)};
    if (folder_make() != 0)
        return 1;
    int failures = test_main(tests, sizeof tests / sizeof *tests);
    remove_tree(folder);
    return failures;
}
