/* SPDX-License-Identifier: GPL-2.0-only */
/* What the cases of dsm_test.c set up and look at. */
#ifndef WORLD_H
#define WORLD_H

#define MEMORY 32UL             /* frames of the guest that are not holes */

extern struct domain dom, dom0;
extern unsigned int notified, flushes;
extern unsigned int spare_frames; /* that alloc_domheap_page() has, at most 64 */
extern void (*when_waiting)(void); /* somebody waits for hypercalls to end */
extern void (*when_port)(void);    /* ENABLE has its event channel */
extern void (*when_entry)(unsigned long gfn); /* an entry has been changed */

extern void (*when_paused)(void);  /* the domain's vCPUs are waited for */
extern void (*when_faulted)(void); /* a copy is about to fail */
extern void (*when_counted)(void); /* a hypercall has counted itself */
extern void (*when_unlocked)(unsigned long gfn); /* the p2m lock is free */

extern bool whole_frames;       /* there is a large page to allocate */
extern unsigned long most_pages; /* that the domain had at a time */
extern bool dies;               /* the domain, before it gets a page */

extern bool deadlock;           /* map_guest_area() has to be tried again */
extern int mapped;              /* pages of vcpu_infos, by Xen */
extern unsigned int asserted;   /* upcalls of vCPUs */

void make_world(void);

#endif
