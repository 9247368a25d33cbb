// SPDX-License-Identifier: MIT
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "error.h"
#include "static_data.h"

/* Variables of libraries within the program's data. */
struct part {
	size_t start, end;
};

static char *first;
static size_t length;

static struct part *parts;	/* by address */
static size_t number_of_parts;

static void add(size_t start, size_t bytes)
{
	struct part *more = reallocarray(parts, number_of_parts + 1, sizeof(*parts));

	if (!more)
		stache_die("no memory for the list of the libraries' variables");
	parts = more;
	parts[number_of_parts++] = (struct part){ start, start + bytes };
}

/* A number, or an address; 0 if there is none. */
static uintptr_t entry(const Elf64_Dyn *dynamic, Elf64_Sxword tag)
{
	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		if (dynamic->d_tag == tag)
			return dynamic->d_un.d_val;
	}
	return 0;
}

static void find_parts(const Elf64_Dyn *dynamic)
{
	const Elf64_Rela *rela = (const Elf64_Rela *)entry(dynamic, DT_RELA);
	const Elf64_Sym *symbols = (const Elf64_Sym *)entry(dynamic, DT_SYMTAB);
	size_t bytes = entry(dynamic, DT_RELASZ);

	for (size_t i = 0; rela && i < bytes / sizeof(*rela); i++) {
		size_t at = rela[i].r_offset - (uintptr_t)first;

		if (ELF64_R_TYPE(rela[i].r_info) == R_X86_64_COPY && at < length)
			add(at, symbols[ELF64_R_SYM(rela[i].r_info)].st_size);
	}
}

/* The program is the first of the modules. */
static int look(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			find_parts((const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr));
	}
	return 1;
}

static int by_address(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

void stache_static_data_start(void *data, void *end)
{
	first = data;
	length = (char *)end - first;
	if ((size_t)((char *)&number_of_parts - first) < length)
		stache_die("programs that create processes are linked with the shared libraries");
	dl_iterate_phdr(look, NULL);
	if (number_of_parts)
		qsort(parts, number_of_parts, sizeof(*parts), by_address);
}

size_t stache_static_data_bytes(void)
{
	return length;
}

void stache_static_data_save(void *to)
{
	memcpy(to, first, length);
}

void stache_static_data_load(const void *from)
{
	const char *bytes = from;
	size_t at = 0;

	/* Two names may stand for the same variable: parts may overlap */
	for (size_t i = 0; i < number_of_parts && !CONTROL(CONTROL_ALL_STATIC_DATA); i++) {
		if (parts[i].start > at)
			memcpy(first + at, bytes + at, parts[i].start - at);
		if (parts[i].end > at)
			at = parts[i].end;
	}
	if (at < length)
		memcpy(first + at, bytes + at, length - at);
}
