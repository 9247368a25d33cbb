/* SPDX-License-Identifier: GPL-2.0-only */
/* For targets that use the library on an embedded device of their own. */
#ifndef HML_FUZZ_DEVICE_H
#define HML_FUZZ_DEVICE_H

#include <unistd.h>

#include "fuzz.h"
#include "low/device.h"
#include "embedded/shm.h"

/* Nobody is held back for guesses: the target makes a great many. */
static struct h_dev *fuzz_device(const char *name)
{
	struct h_dev *dev;
	char spec[96];

	snprintf(spec, sizeof(spec), "shm:fuzz-%s-%d,size=8M,guesses=0", name, getpid());
	MUST(!h_open(spec, &dev));
	return dev;
}

/* The file is there until the device is closed. */
static struct h_dev *fuzz_opened;

static void fuzz_close_device(void)
{
	h_close(fuzz_opened);
}

static struct h_dev *fuzz_open_device(const char *name)
{
	fuzz_opened = fuzz_device(name);
	atexit(fuzz_close_device);
	return fuzz_opened;
}

#endif /* HML_FUZZ_DEVICE_H */
