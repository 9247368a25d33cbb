/* SPDX-License-Identifier: MIT */
#ifndef TEMPEST_ARRAY_H
#define TEMPEST_ARRAY_H

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#endif /* TEMPEST_ARRAY_H */
