/* SPDX-License-Identifier: GPL-2.0-only */
/* Tags of a terminus: the send buffer areas it may send from. */
#ifndef HML_TAG_H
#define HML_TAG_H

struct hamlyn_terminus_bind;
struct hml_context;
struct hml_term;

int hml_tag_bind(struct hml_context *c, const struct hamlyn_terminus_bind *arg);
void hml_tags_drop(struct hml_context *c, struct hml_term *t);
void hml_tags_free(struct hml_term *t);

#endif /* HML_TAG_H */
