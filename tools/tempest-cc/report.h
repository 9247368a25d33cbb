/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEMPEST_CC_REPORT_H
#define TEMPEST_CC_REPORT_H

#include "plan.h"

/**
 * report() - adds to a file what was done with a file of assembly
 * @path: of the report; it is appended to in one write, as several compilers run at once
 * @name: of what was compiled
 * @text, @sites: the file; NULL for @sites: nothing was checked, for @why
 * @why: the reason, or NULL
 *
 * Return: 0, or -errno if it could not be written.
 */
int report(const char *path, const char *name, const struct text *text, const struct site *sites,
	   const char *why);

#endif /* TEMPEST_CC_REPORT_H */
