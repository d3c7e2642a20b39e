/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The topology page: one writer, any number of readers that take no lock.
 *
 * The layout and the reader's side are in <xen/topology.h>; this is the
 * writer's side.  Compiled into the driver and into the unit test.
 */
#ifndef _XEN_ELASTIC_PAGE_H
#define _XEN_ELASTIC_PAGE_H

#include <xen/topology.h>

/**
 * xtopo_page_init() - give a zeroed page its constants
 * @page: the page that readers will map
 *
 * Context: before any reader maps @page.
 */
void xtopo_page_init(struct xtopo_page *page);

/**
 * xtopo_page_publish() - let readers see a new image
 * @page: the mapped page
 * @image: what it is to say; its magic, abi and seq are ignored
 *
 * A reader that sees image->version sees this image or a newer one.  An image
 * with the version of its predecessor is legal: a change that nobody has to
 * follow.
 *
 * Context: any; the caller excludes other writers.
 */
void xtopo_page_publish(struct xtopo_page *page,
			const struct xtopo_page *image);

#endif /* _XEN_ELASTIC_PAGE_H */
