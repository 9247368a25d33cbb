/* SPDX-License-Identifier: GPL-2.0-only */
/* Tickets as descriptors. */
#ifndef HML_TICKET_H
#define HML_TICKET_H

struct file;
struct hamlyn_ticket_create;
struct hamlyn_ticket_drop;
struct hamlyn_ticket_import;
struct hml_context;
struct hml_term;
struct hml_ticket;

void hml_tickets_free(struct hml_term *t);
int hml_ticket_create(struct hml_context *c, struct hamlyn_ticket_create *arg,
		      struct file **file);
void hml_ticket_commit(const struct hamlyn_ticket_create *arg,
		       struct file *file);
void hml_ticket_undo(const struct hamlyn_ticket_create *arg,
		     struct file *file);
int hml_ticket_import(struct hml_context *c, struct hamlyn_ticket_import *arg,
		      struct hml_term **term);
int hml_ticket_of_fd(int fd, struct hml_ticket *k);
int hml_ticket_drop(struct hml_context *c, const struct hamlyn_ticket_drop *arg);
void hml_ticket_undo_import(const struct hamlyn_ticket_import *arg,
			    struct hml_term *t);

#endif /* HML_TICKET_H */
