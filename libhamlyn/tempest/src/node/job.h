/* SPDX-License-Identifier: MIT */
/* The nodes of the program: how they find each other, and how they end. */
#ifndef TEMPEST_JOB_H
#define TEMPEST_JOB_H

#include <stdint.h>

struct h_dev;

/* Learn how many nodes there are and which one this is, and open the device. */
void tempest_job_start(void);

/* NULL if this is the only node. */
struct h_dev *tempest_job_device(void);

/*
 * Texts for the other nodes: what one has put is there after the next fence. Any failure
 * ends the program.
 */
void tempest_job_put(const char *key, const char *value);
void tempest_job_get(uint32_t node, const char *key, char *value);
void tempest_job_fence(void);

#endif /* TEMPEST_JOB_H */
