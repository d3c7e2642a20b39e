/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * What a kernel's image says of itself.  See libxl_vnode_kernel.h.
 */
#include <elf.h>
#include <string.h>

#include "libxl_vnode_kernel.h"

/* As many as Xen's loader looks at. */
#define NOTES_MAX 256

struct bytes {
    const uint8_t *at;
    uint64_t size;
};

/* The part of @all that begins at @offset; false: it is not in there. */
static bool cut(const struct bytes *all, uint64_t offset, uint64_t size,
                struct bytes *part)
{
    if (offset > all->size || size > all->size - offset)
        return false;
    part->at = all->at + offset;
    part->size = size;

    return true;
}

/* Nothing in an image is aligned for sure. */
static bool read_at(const struct bytes *all, uint64_t offset, void *to,
                    size_t size)
{
    struct bytes part;

    if (!cut(all, offset, size, &part))
        return false;
    memcpy(to, part.at, size);

    return true;
}

/* Of a name or a description, with what fills it up. */
static uint64_t filled(uint32_t size)
{
    return ((uint64_t)size + 3) & ~3ULL;
}

static bool is_ours(const Elf64_Nhdr *note, const uint8_t *name)
{
    return note->n_type == VNODE_KERNEL_NOTE_TYPE &&
           note->n_namesz == sizeof(VNODE_KERNEL_NOTE) &&
           !memcmp(name, VNODE_KERNEL_NOTE, sizeof(VNODE_KERNEL_NOTE)) &&
           note->n_descsz >= sizeof(uint32_t);
}

static bool find_note(const struct bytes *notes, uint32_t *abilities)
{
    uint64_t at = 0;
    unsigned int i;

    for (i = 0; i < NOTES_MAX; i++) {
        struct bytes name;
        Elf64_Nhdr note;

        if (!read_at(notes, at, &note, sizeof(note)))
            return false;
        at += sizeof(note);
        if (!cut(notes, at, filled(note.n_namesz), &name))
            return false;
        at += name.size;
        if (is_ours(&note, name.at))
            return read_at(notes, at, abilities, sizeof(*abilities));
        at += filled(note.n_descsz);
    }

    return false;
}

static bool is_elf(const Elf64_Ehdr *head)
{
    return !memcmp(head->e_ident, ELFMAG, SELFMAG) &&
           head->e_ident[EI_CLASS] == ELFCLASS64 &&
           head->e_ident[EI_DATA] == ELFDATA2LSB &&
           head->e_phentsize >= sizeof(Elf64_Phdr);
}

bool vnode_kernel_abilities(const void *image, size_t size,
                            uint32_t *abilities)
{
    const struct bytes all = { .at = image, .size = size };
    struct bytes notes;
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    unsigned int i;

    if (!read_at(&all, 0, &head, sizeof(head)) || !is_elf(&head))
        return false;
    for (i = 0; i < head.e_phnum; i++) {
        /* A sum that wraps is one that is not in there, or another one. */
        if (!read_at(&all, head.e_phoff + (uint64_t)i * head.e_phentsize,
                     &segment, sizeof(segment)))
            return false;
        if (segment.p_type == PT_NOTE &&
            cut(&all, segment.p_offset, segment.p_filesz, &notes) &&
            find_note(&notes, abilities))
            return true;
    }

    return false;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
