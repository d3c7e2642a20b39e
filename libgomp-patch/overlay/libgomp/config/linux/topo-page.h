/* SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1 */

/* Elastic NUMA topology: the page and the device behind it.  Included by
   topo.c.

   The page is never written by us, and no value in it is trusted: the number
   of CPUs is bounded by what was checked at the start, reads are retried a
   bounded number of times, and the number of the system call is accepted
   only if it cannot be a system call that we know.

   Locking: topo_read may be called by anybody.  Everything below "The
   device" needs topo_lock once there is more than one thread.  */

#ifndef GOMP_TOPO_PAGE_H
#define GOMP_TOPO_PAGE_H 1

#include "libgomp.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/numa_reset.h>
#include <xen/topology.h>

/* System calls up to this number exist in Linux 6.12 (462: mseal).  A page
   that names one of them as numa_reset is not believed.  */
#define TOPO_LAST_KNOWN_SYSCALL 462
#define TOPO_MAX_SYSCALL 0xffff

/* How often to look again at a page that is being written: TOPO_SPINS times
   at once, then after giving up the CPU, TOPO_YIELDS times.  A writer needs
   well below a microsecond, unless its virtual CPU is descheduled.  */
#define TOPO_SPINS 256
#define TOPO_YIELDS 256

static const unsigned long long topo_no_version;
const unsigned long long *gomp_topo_version = &topo_no_version;

/* Constant after initialization.  */
static const struct xtopo_page *topo_page;
static dev_t topo_dev, topo_rdev;	/* the file that is mapped */
static ino_t topo_ino;

/* Protected by topo_lock.  */
static char *topo_path;			/* NULL: acknowledgement impossible */
static int topo_fd = -1;
static bool topo_registered;		/* XTOPO_REGISTER has succeeded */
static unsigned long long topo_reset_version;	/* memory follows up to this */

/* Take a consistent copy of the page.  VERSION receives the version that
   the copy has at least.  Return false if the page keeps being written;
   a new version will then follow.  */

static bool
topo_read (struct xtopo_page *copy, unsigned long long *version)
{
  *version = gomp_topo_now ();
  for (unsigned i = 0; i < TOPO_SPINS + TOPO_YIELDS; i++)
    {
      unsigned seq = __atomic_load_n (&topo_page->seq, __ATOMIC_ACQUIRE);
      if ((seq & 1) == 0)
	{
	  memcpy (copy, topo_page, sizeof *copy);
	  __atomic_thread_fence (__ATOMIC_ACQUIRE);
	  if (__atomic_load_n (&topo_page->seq, __ATOMIC_RELAXED) == seq)
	    return true;
	}
      if (i >= TOPO_SPINS)
	sched_yield ();
    }
  return false;
}

/* Map the page of the file PATH.  Complain only about a file that somebody
   has asked for.  */

static bool
topo_map (const char *path)
{
  const char *name = path != NULL ? path : XTOPO_DEVICE;
  const char *problem = NULL;
  struct stat st;
  void *page = MAP_FAILED;
  int fd = open (name, O_RDONLY | O_CLOEXEC);

  if (fd < 0 || fstat (fd, &st) != 0)
    problem = strerror (errno);
  else if (S_ISREG (st.st_mode) && st.st_size < (off_t) sizeof *topo_page)
    problem = "file too short";
  else
    {
      page = mmap (NULL, XTOPO_PAGE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
      if (page == MAP_FAILED)
	problem = strerror (errno);
    }
  if (problem != NULL)
    {
      if (fd >= 0)
	close (fd);
      if (path != NULL)
	gomp_error ("Topology page %s cannot be used: %s", name, problem);
      return false;
    }
  topo_page = page;
  topo_path = strdup (name);
  topo_fd = fd;
  topo_dev = st.st_dev;
  topo_ino = st.st_ino;
  topo_rdev = st.st_rdev;
  return true;
}

static void
topo_unmap (void)
{
  gomp_topo_version = &topo_no_version;
  munmap ((void *) topo_page, XTOPO_PAGE_SIZE);
  topo_page = NULL;
  close (topo_fd);
  topo_fd = -1;
  free (topo_path);
  topo_path = NULL;
}

/* Is this a page that we understand?  COPY receives it.  */

static bool
topo_check_page (struct xtopo_page *copy)
{
  unsigned long long version;

  gomp_topo_version = (const unsigned long long *) &topo_page->version;
  if (topo_page->magic != XTOPO_MAGIC || topo_page->abi != XTOPO_ABI)
    {
      gomp_error ("Topology page %s not used: magic %llx, layout %u; this "
		  "libgomp knows magic %llx, layout %u", topo_path,
		  (unsigned long long) topo_page->magic,
		  (unsigned) topo_page->abi,
		  (unsigned long long) XTOPO_MAGIC, (unsigned) XTOPO_ABI);
      return false;
    }
  if (!topo_read (copy, &version) || version == 0
      || copy->nr_cpus_possible == 0
      || copy->nr_cpus_possible > XTOPO_MAX_CPUS)
    {
      gomp_error ("Topology page %s not used: version %llu, sequence %u, "
		  "%u possible CPUs of at most %u", topo_path, version,
		  (unsigned) topo_page->seq,
		  (unsigned) topo_page->nr_cpus_possible, XTOPO_MAX_CPUS);
      return false;
    }
  topo_reset_version = version;
  return true;
}

/* The device.  */

/* Is FD still the file that we have mapped?  Programs close descriptors that
   are not theirs, and then open others under the same number.  */

static bool
topo_same_file (int fd)
{
  struct stat st;

  return (fstat (fd, &st) == 0 && st.st_dev == topo_dev
	  && st.st_ino == topo_ino && st.st_rdev == topo_rdev);
}

/* Make sure that this process has promised to acknowledge.  Not before the
   first parallel region: a program that only happens to be linked with
   libgomp must not delay a removal.  */

static bool
topo_register (void)
{
  if (topo_path == NULL)
    return false;
  if (topo_fd >= 0 && !topo_same_file (topo_fd))
    topo_fd = -1;
  if (topo_fd < 0)
    {
      topo_registered = false;
      topo_fd = open (topo_path, O_RDONLY | O_CLOEXEC);
      if (topo_fd < 0)
	return false;
      if (!topo_same_file (topo_fd))
	{
	  close (topo_fd);
	  topo_fd = -1;
	  return false;
	}
    }
  /* We acknowledge when a region starts, and know nothing of a process that
     sleeps; a kernel that is older than the second way does not either.  */
  if (topo_registered || ioctl (topo_fd, XTOPO_REGISTER_RUNNING) == 0
      || errno == EBUSY
      || (errno == ENOTTY && ioctl (topo_fd, XTOPO_REGISTER) == 0))
    topo_registered = true;
  else
    {
      gomp_debug (0, "topology: XTOPO_REGISTER: %s\n", strerror (errno));
      if (errno == ENOTTY)
	{
	  /* A page without a device behind it.  */
	  close (topo_fd);
	  topo_fd = -1;
	  topo_path = NULL;
	}
    }
  return topo_registered;
}

static void
topo_acknowledge (unsigned long long version)
{
  for (int try = 0; try < 2 && topo_register (); try++)
    {
      if (ioctl (topo_fd, XTOPO_ACK, (unsigned long) version) == 0)
	return;
      gomp_debug (0, "topology: XTOPO_ACK %llu: %s\n", version,
		  strerror (errno));
      if (errno != ENOTCONN)
	return;
      /* A removal has waited for us in vain, which ended the promise.  */
      topo_registered = false;
    }
}

/* Let the memory of the process follow: numa_reset(2) with FLAGS and
   GRANULE_SHIFT, for the topology VERSION.  Return false if the topology has
   changed again.  The ioctl, for those who cannot make the system call, has
   no flags: it always does what NRST_TOUCH | NRST_POLICY | NRST_FOLLOW do.  */

static bool
topo_reset (const struct xtopo_page *page, unsigned long long version,
	    unsigned flags, unsigned granule_shift)
{
  struct numa_reset_args args;
  int nr = page->reset_nr;
  long ret = -1;

  memset (&args, 0, sizeof args);
  args.topo_version = version;
  args.granule_shift = granule_shift;
  errno = ENOSYS;
  if (nr > TOPO_LAST_KNOWN_SYSCALL && nr <= TOPO_MAX_SYSCALL)
    ret = syscall (nr, -1L, &args, sizeof args, flags);
  /* EPERM: a filter that does not know the call.  */
  if (ret != 0 && (errno == ENOSYS || errno == EPERM) && topo_register ())
    ret = ioctl (topo_fd, XTOPO_RESET, &args);
  if (ret == 0)
    {
      topo_reset_version = version;
      return true;
    }
  gomp_debug (0, "topology: numa_reset for version %llu: %s\n", version,
	      strerror (errno));
  return errno != ESTALE;
}

#endif /* GOMP_TOPO_PAGE_H */
