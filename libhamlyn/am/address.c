// SPDX-License-Identifier: MIT
/*
 * Names of handlers. The address of a function differs between the processes of a
 * program where they are loaded to random places; what is the same is the program file
 * or library it is in, and the offset there.
 */
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "am.h"
#include "../src/low/xxh.h"

#define MAX_LIBRARIES	64
#define MAX_MODULES	(MAX_LIBRARIES + 1)	/* the program is the first one */
#define OFFSET_BITS	48

/* Where a module's code is. Constant after am_address_setup(). */
struct module {
	uintptr_t base;
	uintptr_t start;
	uintptr_t end;
};

static struct module modules[MAX_MODULES];
static struct module image;	/* all of the program, data as well */
static uint32_t count;
static uint32_t last;		/* where a name was found the last time */

struct walk {
	struct am_modules_id *id;
	int too_many;
};

static int is_code(const ElfW(Phdr) *p)
{
	return p->p_type == PT_LOAD && p->p_flags & PF_X;
}

static uint64_t hash(const void *data, size_t length, uint64_t before)
{
	return XXH3_64bits_withSeed(data, length, before);
}

static int is_note(const ElfW(Phdr) *p)
{
	return p->p_type == PT_NOTE;
}

static uint64_t sum_of(const struct dl_phdr_info *info,
		       int (*is_chosen)(const ElfW(Phdr) *), uint64_t sum)
{
	int i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (is_chosen(p))
			sum = hash((const void *)(info->dlpi_addr + p->p_vaddr),
				   p->p_memsz, sum);
	}
	return sum;
}

/* Of the code, which changes when the program does, and of notes: one is the build's name. */
static uint64_t fingerprint(const struct dl_phdr_info *info)
{
	return sum_of(info, is_note, sum_of(info, is_code, 0));
}

static int is_vdso(const struct dl_phdr_info *info)
{
	return strstr(info->dlpi_name, "linux-vdso") ||
	       strstr(info->dlpi_name, "linux-gate");
}

static void note_program(struct dl_phdr_info *info, struct am_modules_id *id)
{
	int i;

	id->program = fingerprint(info);
	id->base = info->dlpi_addr;
	image = (struct module){ .base = info->dlpi_addr,
				 .start = UINTPTR_MAX };
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		if (start < image.start)
			image.start = start;
		if (start + p->p_memsz > image.end)
			image.end = start + p->p_memsz;
	}
}

static int note_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct walk *walk = arg;
	struct module m = { .base = info->dlpi_addr };
	const char *name = strrchr(info->dlpi_name, '/');
	int i;

	(void)size;
	if (is_vdso(info))
		return 0;
	if (!name)
		name = info->dlpi_name;
	if (count == MAX_MODULES) {
		walk->too_many = 1;
		return 1;
	}
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (!is_code(p))
			continue;
		if (!m.end || start < m.start)
			m.start = start;
		if (start + p->p_memsz > m.end)
			m.end = start + p->p_memsz;
	}
	if (!count)
		note_program(info, walk->id);
	else
		walk->id->libraries = hash(name, strlen(name),
					   sum_of(info, is_note, walk->id->libraries ^
						  (m.end - m.start)));
	modules[count++] = m;
	return 0;
}

int am_address_setup(struct am_modules_id *id)
{
	struct walk walk = { .id = id };

	count = 0;
	last = 0;
	id->program = 0;
	id->libraries = 0;
	dl_iterate_phdr(note_module, &walk);
	if (walk.too_many)
		return am_fail(-E2BIG, "the program has more than %d libraries",
			       MAX_LIBRARIES);
	if (!count)
		return am_fail(-ENOEXEC, "the program's own code is not found");
	return 0;
}

int am_address_is_program(const void *address)
{
	return (uintptr_t)address - image.start < image.end - image.start;
}

static int in_module(uint32_t i, uintptr_t address)
{
	return address - modules[i].start < modules[i].end - modules[i].start;
}

/* Return: the name, or 0 if it is in none of the modules. */
uint64_t am_address_name(void (*function)(void))
{
	uintptr_t address = (uintptr_t)function;
	uint32_t i;

	if (am_unlikely(!in_module(last, address))) {
		for (i = 0; i < count && !in_module(i, address); i++)
			;
		if (i == count)
			return 0;
		last = i;
	}
	return (uint64_t)(last + 1) << OFFSET_BITS |
	       (address - modules[last].base);
}

/* Return: the function, or NULL if the name is none of ours. */
void (*am_address_find(uint64_t name))(void)
{
	uint32_t i = (uint32_t)(name >> OFFSET_BITS) - 1;
	uintptr_t address;

	if (am_unlikely(i >= count))
		return NULL;
	address = modules[i].base + (name & ((1ULL << OFFSET_BITS) - 1));
	if (am_unlikely(!in_module(i, address)))
		return NULL;
	return (void (*)(void))address;
}
