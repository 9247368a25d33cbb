/* SPDX-License-Identifier: MIT */
/*
 * Calls of the Tempest interface whose names are lost.
 *
 * The surviving text of the specification says what they do, but not what they are called.
 * These names are ours, and kept in this file, so that they can be changed as soon as the
 * original ones are found. tempest.h includes it.
 */
#ifndef TEMPEST_LOST_H
#define TEMPEST_LOST_H

/**
 * TPPI_is_channel_dst_ready() - may the source send? (T 3.4.1 and 3.4.2, name lost)
 * @dest: node of the destination
 * @channel: the channel
 *
 * Two sentences of the specification end in "to poll": for the destination's
 * TPPI_set_channel_dst(), and for its TPPI_reset_channel(). This call is for both.
 *
 * Return: not 0 once the destination has been set, or reset since the last send.
 */
int TPPI_is_channel_dst_ready(TPPI_NodeId dest, int channel);

/**
 * TPPI_set_channel_src_user_ptr() - store a pointer with the source (T 3.4.4, name lost)
 * @dest: node of the destination
 * @channel: the channel
 * @usr_ptr: whatever the program likes
 */
void TPPI_set_channel_src_user_ptr(TPPI_NodeId dest, int channel, void *usr_ptr);

/**
 * TPPI_get_channel_src_user_ptr() - the pointer stored with the source (T 3.4.4, name lost)
 * @dest: node of the destination
 * @channel: the channel
 *
 * Return: the pointer, NULL if none was stored.
 */
void *TPPI_get_channel_src_user_ptr(TPPI_NodeId dest, int channel);

/**
 * TPPI_set_channel_dst_user_ptr() - store a pointer with the destination (T 3.4.4, name lost)
 * @src: node of the source
 * @channel: the channel
 * @usr_ptr: whatever the program likes
 */
void TPPI_set_channel_dst_user_ptr(TPPI_NodeId src, int channel, void *usr_ptr);

/**
 * TPPI_get_channel_dst_user_ptr() - the pointer of the destination (T 3.4.4, name lost)
 * @src: node of the source
 * @channel: the channel
 *
 * Return: the pointer, NULL if none was stored.
 */
void *TPPI_get_channel_dst_user_ptr(TPPI_NodeId src, int channel);

#endif /* TEMPEST_LOST_H */
