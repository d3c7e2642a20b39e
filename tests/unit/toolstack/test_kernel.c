// SPDX-License-Identifier: GPL-2.0
/*
 * What a kernel's image says of itself: libxl_vnode_kernel.c.
 *
 * An image with three notes, in two segments; then the same with one number of
 * it changed, each prefix of it, and bytes by chance.
 */
#include <elf.h>
#include <stdlib.h>

#include "tap.h"
#include "libxl_vnode_kernel.h"

#define SEGMENTS 3

struct note {
    Elf64_Nhdr head;
    char name[8];
    uint32_t desc[2];
} __attribute__((packed));

/* Of a size that ends with the last byte that is needed. */
static struct image {
    Elf64_Ehdr head;
    char unaligned;
    Elf64_Phdr segment[SEGMENTS];
    struct note first;          /* of a segment of notes without ours */
    struct note second, ours;
} __attribute__((packed)) image;

static void set_note(struct note *note, const char *name, uint32_t type,
                     uint32_t desc)
{
    *note = (struct note) {
        { strlen(name) + 1, sizeof(note->desc), type }, { 0 }, { desc, 7 },
    };
    strcpy(note->name, name);
}

static void build(void)
{
    memset(&image, 0, sizeof(image));
    memcpy(image.head.e_ident, ELFMAG, SELFMAG);
    image.head.e_ident[EI_CLASS] = ELFCLASS64;
    image.head.e_ident[EI_DATA] = ELFDATA2LSB;
    image.head.e_phoff = offsetof(struct image, segment);
    image.head.e_phentsize = sizeof(Elf64_Phdr);
    image.head.e_phnum = SEGMENTS;
    image.segment[0] = (Elf64_Phdr) { .p_type = PT_LOAD, .p_filesz = 1 };
    image.segment[1] = (Elf64_Phdr) {
        .p_type = PT_NOTE, .p_offset = offsetof(struct image, first),
        .p_filesz = sizeof(struct note),
    };
    image.segment[2] = (Elf64_Phdr) {
        .p_type = PT_NOTE, .p_offset = offsetof(struct image, second),
        .p_filesz = 2 * sizeof(struct note),
    };
    set_note(&image.first, "Xen", 1, 99);
    set_note(&image.second, "Linux", 0x100, 98);
    set_note(&image.ours, "Xenuma", 1, 0x12345679);
}

/* 0: there is no note. */
static uint32_t look(size_t size)
{
    /* What is read beyond the end is noticed. */
    uint8_t *copy = malloc(size ? size : 1);
    uint32_t abilities = 0x5a5a5a5a;
    bool found;

    memcpy(copy, &image, size);
    found = vnode_kernel_abilities(copy, size, &abilities);
    free(copy);
    if (!found && abilities != 0x5a5a5a5a)
        return 1;

    return found ? abilities : 0;
}

static uint32_t look_at_all(void)
{
    return look(sizeof(image));
}

static void test_found(void)
{
    build();
    ok_("a note among others, of the second segment",
        look_at_all() == 0x12345679);
    image.head.e_phnum = 65535;
    ok_("... of which there are more than the image has",
        look_at_all() == 0x12345679);
    build();
    image.segment[1].p_offset = sizeof(image);
    ok_("a segment that is not in the image is passed over",
        look_at_all() == 0x12345679);
    image.segment[1].p_offset = UINT64_MAX;
    ok_("... nor one far behind it", look_at_all() == 0x12345679);
    build();
    image.segment[1].p_filesz = UINT64_MAX;
    ok_("... nor one that does not end", look_at_all() == 0x12345679);
    build();
    image.first.head.n_descsz = UINT32_MAX;
    ok_("a note that does not end says nothing of other segments",
        look_at_all() == 0x12345679);
    build();
    image.second.head.n_descsz = 5;
    ok_("a description is filled up to four bytes",
        look_at_all() == 0x12345679);
    build();
    image.ours.head.n_descsz = 4;
    image.segment[2].p_filesz -= 4;
    ok_("a description of one number, the last of the image",
        look(sizeof(image) - 4) == 0x12345679);
    image.ours.desc[0] = VNODE_KERNEL_VCPU_INFO_PAGES;
    ok_("the lowest bit: pages for each vcpu_info", look_at_all() & 1);
    build();
    set_note(&image.second, "Xenuma", 1, 5);
    ok_("of two notes of ours the first", look_at_all() == 5);
    build();
    image.head.e_phentsize = 2 * sizeof(Elf64_Phdr);
    image.head.e_phnum = 2;
    ok_("segments that say more than is known here",
        look_at_all() == 0x12345679);
}

static void test_not_found(void)
{
    static const struct {
        const char *name;
        void *at;
        size_t size;
        uint64_t value;
    } t[] = {
        { "no ELF", image.head.e_ident, 1, 'M' },
        { "32 bits", &image.head.e_ident[EI_CLASS], 1, ELFCLASS32 },
        { "big endian", &image.head.e_ident[EI_DATA], 1, ELFDATA2MSB },
        { "segments smaller than they are", &image.head.e_phentsize, 2, 55 },
        { "segments behind the image", &image.head.e_phoff, 8, 1 << 20 },
        { "segments at the end of the world", &image.head.e_phoff, 8,
          UINT64_MAX - 8 },
        { "no segments", &image.head.e_phnum, 2, 0 },
        { "one segment", &image.head.e_phnum, 2, 1 },
        { "two segments", &image.head.e_phnum, 2, 2 },
        { "no segment of notes", &image.segment[2].p_type, 4, PT_LOAD },
        { "a segment that is too short", &image.segment[2].p_filesz, 8,
          2 * sizeof(struct note) - 8 - 1 },
        { "a segment that ends in the number", &image.segment[2].p_filesz, 8,
          2 * sizeof(struct note) - 5 },
        { "a segment that ends in a name", &image.segment[2].p_filesz, 8,
          sizeof(struct note) + sizeof(Elf64_Nhdr) + 4 },
        { "another name", image.ours.name, 1, 'x' },
        { "a longer name", image.ours.name + 6, 1, 'x' },
        { "another length of the name", &image.ours.head.n_namesz, 4, 6 },
        { "a name with more behind it", &image.ours.head.n_namesz, 4, 8 },
        { "a name without end", &image.ours.head.n_namesz, 4, UINT32_MAX },
        { "another type", &image.ours.head.n_type, 4, 2 },
        { "no room for a number", &image.ours.head.n_descsz, 4, 3 },
        { "a note before it that does not end", &image.second.head.n_descsz, 4,
          UINT32_MAX },
    };
    size_t i;

    for (i = 0; i < NR(t); i++) {
        build();
        memcpy(t[i].at, &t[i].value, t[i].size);
        ok_("no note: %s", look_at_all() == 0, t[i].name);
    }
}

static void test_many(void)
{
    static struct {
        struct image image;
        Elf64_Nhdr more[300];
    } __attribute__((packed)) large;
    uint32_t abilities;
    unsigned int i;
    bool found[2];

    build();
    for (i = 0; i < 2; i++) {
        unsigned int nr = 255 + i;

        large.image = image;
        large.image.segment[2].p_offset = sizeof(image);
        large.image.segment[2].p_filesz =
            nr * sizeof(Elf64_Nhdr) + sizeof(struct note);
        memset(large.more, 0, sizeof(large.more));
        memcpy(&large.more[nr], &image.ours, sizeof(image.ours));
        found[i] = vnode_kernel_abilities(&large, sizeof(large), &abilities);
    }
    ok_("256 notes are looked at, and no more", found[0] && !found[1]);
}

/* A segment must be there as a whole. */
static void test_prefixes(void)
{
    size_t size;
    bool right = true;

    build();
    for (size = 0; size <= sizeof(image); size++)
        right &= (look(size) != 0) == (size == sizeof(image));
    ok_("no prefix of the image has it", right);
}

/* The sanitizers look. */
static void test_chance(void)
{
    unsigned int found = 0;
    int i, n;

    srand(11);
    for (i = 0; i < 200000; i++) {
        build();
        for (n = 1 + rand() % 4; n; n--)
            ((uint8_t *)&image)[(size_t)rand() % sizeof(image)] = rand();
        found += look((size_t)rand() % 4 ? sizeof(image)
                      : (size_t)rand() % sizeof(image)) != 0;
    }
    ok_("bytes by chance: some still have it, and nothing else happens",
        found > 1000);
}

int main(void)
{
    test_found();
    test_not_found();
    test_many();
    test_prefixes();
    test_chance();

    return done_testing();
}
