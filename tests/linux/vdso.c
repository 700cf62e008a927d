/* Functions that programs find in their memory, the version of each, and the clocks that those read. */

#include "system.h"

enum { SHARED_CODE = 33, HASH = 4, NAMES = 5, SYMBOLS = 6, SYMBOL_VERSIONS = 0x6ffffff0, VERSIONS = 0x6ffffffc };
enum { GETRES = 114, GETTIMEOFDAY = 169, MEGA = 1000000 };

struct segment { unsigned kind, flags; size offset, address, physical, file_size, memory_size, alignment; };
struct symbol { unsigned name; unsigned char info, other; unsigned short section; size value, length; };
struct version { unsigned short revision, flags, number, names; unsigned hash, name, next; };
struct time { long seconds, parts; };

static const char *image;
static const struct symbol *symbols;
static const unsigned *hashes;
static const char *names;
static const unsigned short *symbol_versions;
static const struct version *versions;

static int starts_with(const char *one, const char *other) { return equal(one, other, length(other)); }
static int is_same(const char *one, const char *other) { return equal(one, other, length(other) + 1); }

/* Finds the image's tables by its dynamic section, as C libraries do. */
static void read_image(void) {
    const struct segment *segments = (const struct segment *)(image + *(const size *)(image + 32));
    for (int at = 0; at < *(const unsigned short *)(image + 56); at++) {
        if (segments[at].kind == 2)
            for (const size *entry = (const size *)(image + segments[at].address); entry[0]; entry += 2) {
                const char *place = image + entry[1];
                if (entry[0] == HASH)
                    hashes = (const unsigned *)place;
                else if (entry[0] == NAMES)
                    names = place;
                else if (entry[0] == SYMBOLS)
                    symbols = (const struct symbol *)place;
                else if (entry[0] == SYMBOL_VERSIONS)
                    symbol_versions = (const unsigned short *)place;
                else if (entry[0] == VERSIONS)
                    versions = (const struct version *)place;
            }
    }
}

static void *find(const char *name) {
    for (unsigned bucket = 0; bucket < hashes[0]; bucket++)
        for (unsigned at = hashes[2 + bucket]; at; at = hashes[2 + hashes[0] + at])
            if (symbols[at].section && is_same(names + symbols[at].name, name))
                return (void *)(image + symbols[at].value);
    return 0;
}

/* Shows all versions, and which functions have them. */
static void show_versions(void) {
    for (const struct version *at = versions;; at = (const struct version *)((const char *)at + at->next)) {
        const unsigned *name = (const unsigned *)((const char *)at + at->name);
        show(names + *name, at->hash), show("  flags", at->flags);
        for (unsigned index = 1; index < hashes[1]; index++)
            if (symbols[index].section && symbol_versions[index] == at->number && starts_with(names + symbols[index].name, "__"))
                show("  of a function", 1);
        if (!at->next)
            break;
    }
}

static number since(struct time from, struct time to, number unit) {
    return (to.seconds - from.seconds) * unit + to.parts - from.parts;
}

static void clocks(number (*now)(number, struct time *)) {
    static const int all[] = {0, 1, 4, 5, 6, 7};
    for (unsigned at = 0; at < sizeof all / sizeof *all; at++) {
        struct time before, between, after;
        show("clock", all[at]);
        call(CLOCK_GETTIME, all[at], (number)&before, 0, 0, 0, 0);
        show("  read", now(all[at], &between));
        call(CLOCK_GETTIME, all[at], (number)&after, 0, 0, 0, 0);
        number passed = since(before, between, 1000000000), left = since(between, after, 1000000000);
        show("  in order", passed >= 0 && left >= 0 && passed + left < 100000000);
        show("  parts", between.parts >= 0 && between.parts < 1000000000);
    }
    struct time none;
    show("no clock", now(99, &none));
}

int program(number count, char **arguments) {
    char **at = arguments + count + 1;
    while (*at++) {}
    for (const size *entry = (const size *)at; entry[0]; entry += 2)
        if (entry[0] == SHARED_CODE)
            image = (const char *)entry[1];
    show("image", image && equal(image, "\177ELF", 4));
    read_image();
    void *now = find("__kernel_clock_gettime"), *unit = find("__kernel_clock_getres");
    void *day = find("__kernel_gettimeofday");
    show("all", now && unit && day && find("__kernel_rt_sigreturn") && !find("__kernel_nothing"));
    show_versions();
    clocks((number (*)(number, struct time *))now);
    struct time one, two = {0, 0}, three;
    show("unit", ((number (*)(number, struct time *))unit)(1, &one)), show("seconds", one.seconds), show("parts", one.parts);
    call(GETTIMEOFDAY, (number)&one, 0, 0, 0, 0, 0);
    show("date", ((number (*)(struct time *, void *))day)(&two, 0));
    call(GETTIMEOFDAY, (number)&three, 0, 0, 0, 0, 0);
    show("in order", since(one, two, MEGA) >= 0 && since(two, three, MEGA) >= 0 && since(one, three, MEGA) < MEGA);
    return 0;
}
