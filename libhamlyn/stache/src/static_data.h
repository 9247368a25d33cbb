/* SPDX-License-Identifier: MIT */
/*
 * The static data of the program: what its own files have in .data and .bss. All of it but
 * what belongs to shared libraries, whose variables the linker has put there (copy
 * relocations): each node keeps its own.
 */
#ifndef STACHE_STATIC_DATA_H
#define STACHE_STATIC_DATA_H

#include <stddef.h>

/* Ends the program if the library's own data are among them: it is linked statically. */
void stache_static_data_start(void *data, void *end);

size_t stache_static_data_bytes(void);

/* Copy them to @to; set them to what such a copy says. */
void stache_static_data_save(void *to);
void stache_static_data_load(const void *from);

#endif /* STACHE_STATIC_DATA_H */
