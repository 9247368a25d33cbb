// SPDX-License-Identifier: MIT
/* Structures that callers fill: Documentation/abi.rst, "Structures that grow". */
#include "low/low.h"

static bool all_zero(const unsigned char *bytes, size_t n)
{
	while (n && !bytes[n - 1])
		n--;
	return !n;
}

static int too_new(struct h_dev *dev, size_t size, size_t known)
{
	static const char words[] =
		"a structure of %zu bytes: this library, %d.%d.%d, knows %zu; the rest is not 0";

	if (!dev)
		return h__early(-E2BIG, words, size, H_VERSION_MAJOR, H_VERSION_MINOR,
				H_VERSION_PATCH, known);
	return h__refuse(dev, -E2BIG, words, size, H_VERSION_MAJOR, H_VERSION_MINOR,
			 H_VERSION_PATCH, known);
}

int h__attr_reserved(struct h_dev *dev, uint32_t reserved)
{
	static const char words[] = "reserved %u: must be 0";

	return dev ? h__refuse(dev, -EINVAL, words, reserved) :
		     h__early(-EINVAL, words, reserved);
}

int h__attr_check(struct h_dev *dev, const void *attr, size_t size, size_t known)
{
	const unsigned char *bytes = attr;

	if (size > known && !all_zero(bytes + known, size - known))
		return too_new(dev, size, known);
	return 0;
}

int h__attr_take(struct h_dev *dev, void *to, size_t known, const void *attr, size_t size)
{
	static const char no_size[] = "a structure of 0 bytes";
	int err;

	memset(to, 0, known);
	if (!attr)
		return 0;
	/* Of a program in another language that has not said it. */
	if (!size)
		return dev ? h__refuse(dev, -EINVAL, no_size) : h__early(-EINVAL, no_size);
	err = h__attr_check(dev, attr, size, known);
	if (err)
		return err;
	memcpy(to, attr, size < known ? size : known);
	return 0;
}
