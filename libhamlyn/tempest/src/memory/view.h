/* SPDX-License-Identifier: MIT */
/* The application view: which pages are open, so that nothing in them traps. */
#ifndef TEMPEST_VIEW_H
#define TEMPEST_VIEW_H

#include "memory/segment.h"

/**
 * struct tempest_view_ops - a way to close and open pages
 * @name: for messages and settings
 * @locks: how many pages may be opened and closed at once; a power of two
 * @start: close all. Return: NULL, or why it cannot be had
 * @open: let accesses through that need this tag or less; only of a closed page.
 *	Return: false if it cannot, and nothing has changed
 * @reopen: of a page that is open, but has trapped all the same; NULL if none does
 * @close: let nothing through; true if all pages have been closed with it
 */
struct tempest_view_ops {
	const char *name;
	unsigned int locks;
	const char *(*start)(void);
	bool (*open)(uintptr_t page, uint8_t tag);
	bool (*reopen)(uintptr_t page, uint8_t tag);
	bool (*close)(uintptr_t page);
};

extern const struct tempest_view_ops tempest_view_userfaultfd;
extern const struct tempest_view_ops tempest_view_mprotect;

/**
 * tempest_view_start() - close the application view
 * @name: of a way, or NULL: the best that the system allows
 */
void tempest_view_start(const char *name);

/* Open a page if all its blocks have at least this tag. True if it is open for it. */
bool tempest_view_open(uintptr_t page, uint8_t need);

/* After this no access goes through that needs more than this tag. */
void tempest_view_close(uintptr_t page, uint8_t tag);

#endif /* TEMPEST_VIEW_H */
