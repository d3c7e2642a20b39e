/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * A network for a guest with vnodes on another host: can its backend wait for
 * a page that is there?
 *
 * Linux' netback takes pages in a softirq, where nobody may sleep.  One that
 * cannot wait there takes the whole domain down with it when it meets such a
 * page.  Linux says by a parameter of the module that it can.  It can be read
 * for this domain only: of a backend in another one nobody knows from here.
 *
 * Locking: none; what is asked does not change while the kernel runs.
 */
#include "libxl_osdeps.h" /* must come before any other headers */

#include "libxl_internal.h"

#define NETBACK   "/sys/module/xen_netback"
#define PARAMETER "page_wait_msecs"

static int check_nic(libxl__gc *gc, uint32_t domid, const libxl_device_nic *nic)
{
    int rc = 0;

    if (nic->backend_domid != LIBXL_TOOLSTACK_DOMID) {
        LOGD(WARN, domid, "the guest has a vnode on another host, and a vif "
             "with its backend in domain %"PRIu32": it is not seen from here "
             "whether Linux there can wait for pages of that host ("NETBACK
             "/parameters/"PARAMETER"); if not, that domain crashes",
             nic->backend_domid);
        goto out;
    }
    if (!access(NETBACK"/parameters/"PARAMETER, F_OK))
        goto out;

    if (access(NETBACK, F_OK))
        LOGD(ERROR, domid, "a vif for a guest with a vnode on another host: "
             "it is not known whether the backend can wait for pages of that "
             "host, since this domain has none (no "NETBACK"); load "
             "xen-netback first");
    else
        LOGD(ERROR, domid, "a vif for a guest with a vnode on another host: "
             "the backend cannot wait for pages of that host, and would crash "
             "this domain (no "NETBACK"/parameters/"PARAMETER"); boot it with "
             "Xenuma's Linux, or leave vif= or host= out");
    rc = ERROR_VNUMA_CONFIG_INVALID;

 out:
    return rc;
}

int libxl__vnode_check_nics(libxl__gc *gc, uint32_t domid,
                            const libxl_domain_config *d_config)
{
    int i, rc = 0;

    if (!libxl__vnode_nr_spanning(&d_config->b_info)) goto out;

    for (i = 0; i < d_config->num_nics; i++) {
        rc = check_nic(gc, domid, &d_config->nics[i]);
        if (rc) goto out;
    }

 out:
    return rc;
}

int libxl__vnode_check_new_nic(libxl__gc *gc, uint32_t domid,
                               const libxl_device_nic *nic)
{
    libxl_domain_config d_config;
    int rc;

    libxl_domain_config_init(&d_config);
    rc = libxl__get_domain_configuration(gc, domid, &d_config);
    if (!rc && libxl__vnode_nr_spanning(&d_config.b_info))
        rc = check_nic(gc, domid, nic);
    libxl_domain_config_dispose(&d_config);

    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
