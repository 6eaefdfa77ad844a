/* stories.c -- makes up short stories: an opening, some events, something said and an end, about the same people and things. */
#include "stories.h"
#include <stdlib.h>
#include <string.h>

static const char *const girls[] = {"Anna", "Clara", "Emma", "Greta", "Ida", "Lena", "Mia", "Nora"};
static const char *const boys[] = {"Ben", "David", "Felix", "Hugo", "Jonas", "Max", "Paul", "Tom"};
static const char *const things[] = {"ball", "kite", "boat",  "drum",  "book", "lamp",
                                     "hat",  "key",  "cup",   "clock", "coin", "map",
                                     "bell", "box",  "flute", "stone"};
static const char *const kinds[] = {"red",   "blue",   "green",  "small",  "old",    "heavy",
                                    "shiny", "broken", "golden", "wooden", "yellow", "round"};
static const char *const places[] = {"garden", "forest", "market",  "school", "kitchen", "harbour",
                                     "meadow", "tower",  "library", "mill",   "cave",    "village"};
static const char *const feelings[] = {"happy", "sad",    "tired", "proud",
                                       "angry", "afraid", "calm",  "curious"};

/* %n, %f: two people; %e, %h, %m: the first as he or she, his or her, him or her; %t: a thing, %k: its kind; %p, %q: two places;
 * %l: a feeling. */
static const char *const openings[] = {
    "One morning %n found a %k %t in the %p. ",
    "%n had a %k %t, and %e took it to the %p every day. ",
    "On a cold day %n walked to the %p with %f. There they saw a %k %t. ",
    "%n and %f lived near the %p. In their house was a %k %t. ",
    "Last winter %f gave %n a %k %t. ",
    "It rained, and %n sat in the %p with a %k %t in %h hands. ",
};
static const char *const events[] = {
    "%n carried the %t to the %q and showed it to %f. ",
    "Nobody in the %q had ever seen such a %t. ",
    "Then the %t fell into the water, and %n was %l. ",
    "%f wanted to have the %t, but %n did not give it away. ",
    "In the evening the %t was gone. %n looked for it in the %p and in the %q. ",
    "An old man from the %q asked for the %t, because it was %k. ",
    "%n hid the %t behind the %q, where only %f could find it. ",
    "They played with the %k %t until it was dark. ",
    "The wind blew, and they ran from the %p to the %q. ",
    "%f helped %m to clean the %t, and then it looked like new. ",
};
static const char *const talks[] = {
    "\"Where did you find the %t?\" asked %f. \"In the %p,\" said %n. ",
    "\"It is only a %k %t,\" said %f, but %n did not believe it. ",
    "\"Please take the %t,\" said %n to %f. \"I have no use for it.\" ",
    "\"Why are you so %l?\" asked %f. %n looked at the %t and did not answer. ",
    "\"Tomorrow we will go to the %q,\" said %f, \"and we will take the %t with us.\" ",
    "\"This is my %t,\" said %n. \"No,\" said %f, \"it is ours.\" ",
};
static const char *const ends[] = {
    "At last %n put the %t on the table and went to bed.\n\n",
    "Since that day %n and %f have been friends.\n\n",
    "So the %k %t came back to the %p, and everybody was %l.\n\n",
    "%n was %l, and %e never forgot the %k %t.\n\n",
    "When %f came home, the %t was standing in front of the door.\n\n",
    "And that is the story of %n and the %k %t.\n\n",
};

typedef struct scene {
    const char *name, *friend, *thing, *kind, *place, *other, *feeling;
    bool girl;
} scene;

static size_t below(uint64_t *random, size_t n)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(*random >> 33) % n;
}

#define ONE_OF(list) ((list)[below(random, sizeof(list) / sizeof *(list))])

static scene scene_of(uint64_t *random)
{
    scene s = {.girl = below(random, 2) == 0, .thing = ONE_OF(things), .kind = ONE_OF(kinds)};
    bool other_girl = below(random, 2) == 0;
    s.name = s.girl ? ONE_OF(girls) : ONE_OF(boys);
    do
        s.friend = other_girl ? ONE_OF(girls) : ONE_OF(boys);
    while (s.friend == s.name);
    s.place = ONE_OF(places);
    do
        s.other = ONE_OF(places);
    while (s.other == s.place);
    s.feeling = ONE_OF(feelings);
    return s;
}

static const char *word_of(const scene *s, char letter)
{
    switch (letter) {
    case 'n':
        return s->name;
    case 'f':
        return s->friend;
    case 'e':
        return s->girl ? "she" : "he";
    case 'h':
        return s->girl ? "her" : "his";
    case 'm':
        return s->girl ? "her" : "him";
    case 't':
        return s->thing;
    case 'k':
        return s->kind;
    case 'p':
        return s->place;
    case 'q':
        return s->other;
    default:
        return s->feeling;
    }
}

typedef struct page {
    char *text;
    size_t n, most;
} page;

static void put(page *to, const char *text, size_t n)
{
    n = n < to->most - to->n ? n : to->most - to->n;
    memcpy(to->text + to->n, text, n);
    to->n += n;
}

static void tell(page *to, const char *sentence, const scene *s)
{
    for (const char *c = sentence; *c; c++)
        if (*c == '%') {
            const char *word = word_of(s, *++c);
            put(to, word, strlen(word));
        } else {
            put(to, c, 1);
        }
}

char *stories_new(size_t n, uint64_t seed)
{
    uint64_t state = seed * 2 + 1, *random = &state;
    page to = {malloc(n + 1), 0, n};
    while (to.text && to.n < n) {
        scene s = scene_of(random);
        tell(&to, ONE_OF(openings), &s);
        enum { EVENTS = sizeof events / sizeof *events };
        size_t event = below(random, EVENTS);
        for (size_t i = 0, count = 1 + below(random, 3); i < count; i++, event += 3)
            tell(&to, events[event % EVENTS], &s);
        tell(&to, ONE_OF(talks), &s);
        tell(&to, ONE_OF(ends), &s);
    }
    if (to.text)
        to.text[n] = '\0';
    return to.text;
}
