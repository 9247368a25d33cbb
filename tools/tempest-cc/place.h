/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_PLACE_H
#define TEMPEST_CC_PLACE_H

#include "options.h"

/**
 * struct places - folders of what belongs to this program
 * @assembler: ours, named "as", with a slash at its end
 * @headers: tempest.h
 * @library: libhamlyn-tempest
 * @built: they are those of a folder that was built, not installed
 */
struct places {
	char *assembler;
	char *headers;
	char *library;
	bool built;
};

/*
 * Beside us, in a folder that was built; or where all was installed, below the root that we
 * are found under. Ends the program if the assembler is not there.
 */
void places_find(struct places *places);

/* Ends the program, with its name, if the library is in none of the folders that are searched. */
void places_need_library(const struct places *places, const struct options *options);

/* The two in one, to be freed. */
char *joined(const char *a, const char *b);

/* The first line that a compiler prints when asked for something, to be freed. */
char *ask(const char *compiler, const char *what);

#endif /* TEMPEST_CC_PLACE_H */
