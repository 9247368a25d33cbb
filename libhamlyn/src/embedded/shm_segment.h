/* SPDX-License-Identifier: MIT */
/*
 * What the sources of a segment's life share, and no others: its locks, the words that it is opened
 * by, and its file.
 */
#ifndef HAMLYN_SHM_SEGMENT_H
#define HAMLYN_SHM_SEGMENT_H

#include "embedded/shm.h"

#define SHM_DIR		"/dev/shm"
#define SHM_NAME_CHARS	64		/* of a name, at most */
#define SHM_LEAVE_WAIT_NS	(100ll * 1000000)

/* What may be chosen of a segment when it is made */
struct shm_options {
	u64 size;
	u32 guesses;
	u32 host;
	bool huge;
	bool join;		/* one that is there, or none */
	bool has_host;
	bool has_fabric;
	u8 fabric[HAMLYN_FABRIC_ID_BYTES];
};

/* shm_lock.c */
int h__shm_lock_bytes(int fd, int cmd, short type, off_t first, off_t n);
int h__shm_try_tables(int fd);
int h__shm_lock_tables(int fd, const u32 *changes, int64_t wait_ns, bool patient);
int h__shm_lock_unmapped(int fd, struct h_open_wait *w);
void h__shm_tell_unlocked(struct shm_segment *seg);
void h__shm_unlock_and_close(int fd);
bool h__shm_others_attached(int fd);
int h__shm_check_descriptor(struct h_dev *dev);

/* shm_spec.c */
int h__shm_parse_spec(const char *spec, unsigned int uid, char *file, size_t room,
		      struct shm_options *o);

/* shm_file.c */
int h__shm_open_file(const char *file, int flags);
int h__shm_cannot_open(const char *file, int err);
void h__shm_remove_file(const char *file);
bool h__shm_is_left_behind(int fd);
void h__shm_sweep(unsigned int uid);

#endif
