/* speech.c -- a source of pulses and noise, and three resonances that glide from sound to sound. */
#include "speech.h"
#include <math.h>
#include <string.h>

const char *const speech_words[10] = {"zero", "one", "two",   "three", "four",
                                      "five", "six", "seven", "eight", "nine"};

/* A sound: three formants in Hz, how much voice and noise there is, where the noise has its peak, how long it lasts in ms. */
typedef struct sound {
    char name;
    double f[3], voice, noise, peak, ms;
} sound;
static const sound sounds[] = {
    {'z', {300, 1700, 2600}, 0.3, 0.30, 5200, 80},  {'s', {300, 1700, 2600}, 0.0, 0.50, 5600, 100},
    {'f', {300, 1100, 2300}, 0.0, 0.22, 3400, 90},  {'v', {300, 1100, 2300}, 0.4, 0.10, 3400, 60},
    {'T', {320, 1300, 2500}, 0.0, 0.18, 4400, 90},  {'t', {350, 1800, 2700}, 0.0, 0.60, 4500, 30},
    {'k', {350, 1900, 2500}, 0.0, 0.55, 2200, 35},  {'.', {350, 1500, 2500}, 0.0, 0.00, 3000, 45},
    {'i', {290, 2250, 3000}, 1.0, 0.00, 3000, 130}, {'I', {400, 1950, 2550}, 1.0, 0.00, 3000, 80},
    {'e', {530, 1850, 2500}, 1.0, 0.00, 3000, 90},  {'A', {650, 1200, 2450}, 1.0, 0.00, 3000, 100},
    {'a', {730, 1100, 2450}, 1.0, 0.00, 3000, 110}, {'o', {500, 850, 2400}, 1.0, 0.00, 3000, 120},
    {'u', {310, 900, 2250}, 1.0, 0.00, 3000, 130},  {'r', {330, 1100, 1500}, 0.8, 0.00, 3000, 80},
    {'w', {300, 650, 2200}, 0.7, 0.00, 3000, 70},   {'n', {260, 1600, 2600}, 0.5, 0.00, 3000, 90},
};
/* The sounds of each digit. */
static const char *const said[10] = {"zIro", "wAn",   "tu",    "Tri",  "for",
                                     "faIv", "sI.ks", "sevAn", "eI.t", "naIn"};

static double uniform(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*random >> 11) * 0x1p-53;
}

static double between(uint64_t *random, double a, double b)
{
    return a + (b - a) * uniform(random);
}

/* A resonance at f Hz of width w Hz: y[n] = a x[n] + b y[n - 1] + c y[n - 2]. */
typedef struct resonance {
    double y1, y2;
} resonance;

static double resonate(resonance *r, double x, double f, double w)
{
    const double c = -exp(-2 * 3.14159265358979 * w / SPEECH_RATE);
    const double b =
        2 * exp(-3.14159265358979 * w / SPEECH_RATE) * cos(2 * 3.14159265358979 * f / SPEECH_RATE);
    const double y = (1 - b - c) * x + b * r->y1 + c * r->y2;
    r->y2 = r->y1;
    r->y1 = y;
    return y;
}

/* A voice, and what goes on from sample to sample. */
typedef struct voice {
    double pitch, size, speed, hoarse, hiss, loud, phase;
    resonance formant[3], friction;
    double f[3], voiced, noise, peak; /* of now; they glide to those of the sound */
} voice;

static double sample(voice *v, const sound *to, double falling, uint64_t *random)
{
    const double glide = 1.0 / (0.012 * SPEECH_RATE);
    for (int k = 0; k < 3; k++)
        v->f[k] += (to->f[k] * v->size - v->f[k]) * glide;
    v->voiced += (to->voice - v->voiced) * glide * 2;
    v->noise += (to->noise - v->noise) * glide * 3;
    v->peak += (to->peak * v->size - v->peak) * glide * 2;
    v->phase += v->pitch * (1.1 - 0.25 * falling) / SPEECH_RATE;
    double pulse = -0.05;
    if (v->phase >= 1) {
        v->phase -= 1;
        pulse = 3;
    }
    const double white = between(random, -1, 1);
    double x = v->voiced * (pulse + v->hoarse * white), y = x;
    static const double widths[] = {80, 110, 160};
    for (int k = 0; k < 3; k++)
        y = resonate(&v->formant[k], y, v->f[k], widths[k]);
    const double friction = resonate(&v->friction, white * v->noise, v->peak, 1500);
    return v->loud * (0.9 * y + 0.5 * friction) + v->hiss * white;
}

static const sound *sound_of(char name)
{
    const sound *s = sounds;
    while (s->name != name)
        s++;
    return s;
}

size_t speech_say(const int *digits, int n, uint64_t *random, float *samples, size_t most)
{
    voice v = {.pitch = between(random, 90, 220),
               .size = between(random, 0.92, 1.15),
               .speed = between(random, 0.85, 1.15),
               .hoarse = between(random, 0.02, 0.2),
               .hiss = between(random, 0.0005, 0.005),
               .loud = between(random, 0.4, 1)};
    const sound pause = {.name = ' ', .f = {400, 1500, 2500}, .peak = 3000};
    memcpy(v.f, pause.f, sizeof v.f);
    v.peak = pause.peak;
    size_t at = 0;
    for (int d = 0; d <= n; d++) {
        size_t rest = (size_t)(between(random, 0.03, 0.10) * SPEECH_RATE);
        while (rest-- && at < most)
            samples[at++] = (float)sample(&v, &pause, 0, random);
        for (const char *c = d < n ? said[digits[d]] : ""; *c; c++) {
            const sound *s = sound_of(*c);
            size_t length =
                (size_t)(s->ms * between(random, 0.85, 1.15) / v.speed * 1e-3 * SPEECH_RATE);
            while (length-- && at < most) {
                samples[at] = (float)sample(&v, s, (double)at / (double)most, random);
                at++;
            }
        }
    }
    float largest = 1e-6f;
    for (size_t i = 0; i < at; i++)
        largest = fmaxf(largest, fabsf(samples[i]));
    for (size_t i = 0; i < at; i++)
        samples[i] *= (float)v.loud / largest;
    return at;
}
