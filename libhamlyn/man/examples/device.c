// SPDX-License-Identifier: MIT
/*
 * h_open, h_close, h_explain, h_query, h_dev_is_embedded, h_dev_name
 *
 * Open the device that the user has chosen, and say what it is. What failed is the errno;
 * why, in words, is asked before the next call.
 */
#include <err.h>
#include <stdio.h>

#include <hamlyn.h>

int main(void)
{
	char why[HAMLYN_EXPLAIN_BYTES];
	struct hamlyn_query query;
	struct h_area *area;
	struct h_dev *dev;
	int ret;

	ret = h_open(NULL, &dev);
	if (ret) {
		h_explain(NULL, why, sizeof(why));
		errx(1, "no device: %s: %s", strerror(-ret), why);
	}
	ret = h_query(dev, &query);
	if (ret)
		errx(1, "%s: %s", h_dev_name(dev), strerror(-ret));
	printf("%s device, packets of %u bytes\n",
	       h_dev_is_embedded(dev) ? "embedded" : "kernel",
	       query.packet_size);

	ret = h_area_alloc(dev, query.max_area + 1, &area);
	if (ret) {
		h_explain(dev, why, sizeof(why));
		printf("%s, %s\n", strerror(-ret),
		       *why ? "and the device says why" : "no more is known");
	}
	h_close(dev);
	return 0;
}

/*
 * It prints:
 *
 * embedded device, packets of 16384 bytes
 * Argument list too long, and the device says why
 */
