/* SPDX-License-Identifier: MIT */
/* What the ways to start have in common: error texts, and which texts may be published. */
#ifndef HAMLYN_AM_BOOT_TEXT_H
#define HAMLYN_AM_BOOT_TEXT_H

#include "boot.h"

/* The text into @boot->error. Return: @err, so that callers can return what it returns. */
__attribute__((format(printf, 3, 4)))
int am_boot_fail(struct am_boot *boot, int err, const char *format, ...);

/*
 * Keys and values travel in lines of PMI-1, where a space or a line's end would end them
 * and '=' would begin one. So each way takes printable text without these two only, and
 * what runs alone runs under every launcher. @value may be NULL.
 * Return: 0, -EINVAL, or -EMSGSIZE.
 */
int am_boot_check(struct am_boot *boot, const char *key, const char *value);

/* Return: 0 or -EINVAL if there is no such process */
int am_boot_check_rank(struct am_boot *boot, int rank);

#endif /* HAMLYN_AM_BOOT_TEXT_H */
