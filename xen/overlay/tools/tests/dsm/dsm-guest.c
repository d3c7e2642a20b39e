// SPDX-License-Identifier: GPL-2.0-only
/*
 * A PVH kernel with two vCPUs, which run in two slices: dsm-slices -v.
 *
 * vCPU 0 starts vCPU 1 as Linux does, by INIT and SIPI through the x2APIC, and
 * tells it what to do.  Both use the same memory, page tables, and code.  What
 * is looked at, in this order (enum stage):
 *
 *   count      LOCKed additions of both to one word: none is lost
 *   turns      a page of words goes to and fro: it is what the other has
 *              written, and no time stamp is from the future
 *   litmus     each writes its own word and then reads the other's: not both
 *              read the old one (two pages, with a fence between)
 *   remote     memory from REMOTE on, which slice 1 is home to
 *   vectors    an interrupt each way, the receiver is halted
 *   broadcast  to all but self
 *   nmi        wakes a vCPU that is halted with interrupts off
 *   calls      hypercalls that are answered, and those that are refused
 *   events     ports of both, which each binds, unmasks and sends to
 *   timer      both have the same time, and vCPU 1 has a timer by it
 *   closed     ports that vCPU 0 closes are silent
 *   again      vCPU 1 is started once more
 *
 * At the end vCPU 0 powers the guest off, or either one crashes it when
 * something is wrong.  What there is to tell is in the page at REPORT.
 */
#include <stdbool.h>
#include <stdint.h>

#define __XEN_TOOLS__ 1         /* for uint64_aligned_t */
#include <xen/xen.h>
#include <xen/event_channel.h>
#include <xen/hvm/hvm_op.h>
#include <xen/memory.h>
#include <xen/sched.h>
#include <xen/vcpu.h>
#include <xen/version.h>

#define SHARED  0x6000UL        /* shared_info: one for each slice */
#define REPORT  0x7000UL        /* where dsm-slices -w 7 looks */
#define CODE    0x8000UL        /* where vCPU 1 begins, in real mode */
#define REMOTE  0x40000000UL    /* 1 GiB: FIRST of dsm-slices */

#define COUNTS  200000U
#define TURNS   200U
#define LITMUS  100U
#define PAGES   32U             /* of REMOTE */
#define VECTORS 100U
#define EVENTS  100U
#define SOON_NS 20000000ULL
#define WORDS   512U            /* of a page */

#define PING    0x40
#define PONG    0x41
#define CROWD   0x42
#define UPCALL  0x43

#define PAGE_ALIGNED __attribute__((aligned(4096)))
#define barrier() asm volatile ( "" ::: "memory" )
#define EEXIST 17
#define EINVAL 22
#define ENOSYS 38
#define HALF   2048U             /* ports from here on are those of slice 1 */

/* ---- The beginning of both ---- */

asm (
    "    .section .note.Xen, \"a\", @note\n"
    "    .balign 4\n"
    "    .long 4, 4, 18\n"      /* XEN_ELFNOTE_PHYS32_ENTRY */
    "    .asciz \"Xen\"\n"
    "    .long start\n"

    "    .text\n"
    "    .code32\n"
    "    .globl start\n"
    "start:\n"
    "    cld\n"
    "    lgdtl gdt_pointer\n"
    "    ljmpl $0x18, $1f\n"
    "1:  mov $0x10, %ax\n"
    "    mov %ax, %ds\n"
    "    mov %ax, %es\n"
    "    mov %ax, %ss\n"
    "    mov $stack0 + 0x4000, %esp\n"
    "    xor %edi, %edi\n"
    "to_long_mode:\n"
    "    mov %cr4, %eax\n"
    "    or $0x20, %eax\n"      /* PAE */
    "    mov %eax, %cr4\n"
    "    mov $pml4, %eax\n"
    "    mov %eax, %cr3\n"
    "    mov $0xc0000080, %ecx\n"
    "    rdmsr\n"
    "    or $0x100, %eax\n"     /* EFER.LME */
    "    wrmsr\n"
    "    mov %cr0, %eax\n"
    "    and $0x1fffffff, %eax\n" /* caches on */
    "    or $0x80010001, %eax\n"  /* PG, WP, PE */
    "    mov %eax, %cr0\n"
    "    ljmpl $0x08, $2f\n"
    "    .code64\n"
    "2:  xor %eax, %eax\n"
    "    mov %eax, %fs\n"
    "    mov %eax, %gs\n"
    "    mov %esp, %esp\n"
    "    mov %edi, %edi\n"
    "    call run\n"
    "    ud2\n"

    "    .code16\n"             /* at CODE, CS:IP = CODE / 16 : 0 */
    "    .globl code, code_end\n"
    "code:\n"
    "    cli\n"
    "    lgdtl %cs:4f - code\n"
    "    mov %cr0, %eax\n"
    "    or $1, %eax\n"
    "    mov %eax, %cr0\n"
    "    ljmpl $0x18, $3f\n"
    "    .balign 4\n"
    "4:  .word 31\n"
    "    .long gdt\n"
    "code_end:\n"
    "    .code32\n"
    "3:  mov $0x10, %ax\n"
    "    mov %ax, %ds\n"
    "    mov %ax, %es\n"
    "    mov %ax, %ss\n"
    "    mov $stack1 + 0x4000, %esp\n"
    "    mov $1, %edi\n"
    "    jmp to_long_mode\n"
    "    .code64\n"

    "    .data\n"
    "    .balign 8\n"
    "gdt:\n"
    "    .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00cf9b000000ffff\n"
    "gdt_pointer:\n"
    "    .word 31\n"
    "    .long gdt\n"

    /*
     * The first 4 GiB, as they are, by pages of 2 MiB; accessed and dirty bits
     * are for the processor to set.
     */
    "    .balign 4096\n"
    "pml4:\n"
    "    .quad pdpt + 3\n"
    "    .fill 511, 8, 0\n"
    "pdpt:\n"
    "    .quad pd + 3, pd + 0x1003, pd + 0x2003, pd + 0x3003\n"
    "    .fill 508, 8, 0\n"
    "pd:\n"
    "    .set address, 0x83\n"
    "    .rept 2048\n"
    "    .quad address\n"
    "    .set address, address + 0x200000\n"
    "    .endr\n"

    "    .bss\n"
    "    .balign 4096\n"
    "stack0: .skip 0x4000\n"
    "stack1: .skip 0x4000\n"
    "    .text\n"
);

extern const uint8_t code[], code_end[];

/* ---- What is told ---- */

enum stage {
    START, COUNT, TURN, LITMUS_TEST, REMOTE_TEST, VECTOR, BROADCAST, NMI, CALLS,
    EVENT, TIMER, CLOSED, AGAIN, END,
};

/* The words of REPORT; the test knows them by their numbers. */
struct report {
    uint64_t magic;             /* "DSM guest" */
    uint64_t stage;             /* that was begun last */
    uint64_t line, got, want;   /* of the first failure, or 0 */
    uint64_t counted;
    uint64_t turns;
    uint64_t least_ticks;       /* from a time stamp to who reads it */
    uint64_t both_new, one_old; /* results of litmus, the sum is LITMUS */
    uint64_t pings, pongs;
    uint64_t pong_ticks;        /* sum of VECTORS round trips */
    uint64_t crowd, nmis;
    uint64_t starts;            /* of vCPU 1 */
    uint64_t shared_ticks;      /* all of it */
    uint64_t events;            /* of EVENTS, that came to vCPU 1 */
    uint64_t event_ticks;       /* sum of EVENTS round trips */
    uint64_t late_ns;           /* of the timer, by the guest's time */
};
#define report (*(volatile struct report *)REPORT)

static inline uint64_t ticks(void)
{
    uint32_t low, high;

    asm volatile ( "lfence; rdtsc" : "=a" (low), "=d" (high) :: "memory" );

    return low | (uint64_t)high << 32;
}

static inline void relax(void)
{
    asm volatile ( "pause" ::: "memory" );
}

static inline void fence(void)
{
    asm volatile ( "mfence" ::: "memory" );
}

static bool intel;

static long hypercall(unsigned long op, unsigned long a1, unsigned long a2,
                      unsigned long a3)
{
    long rc;

    if ( intel )
        asm volatile ( "vmcall" : "=a" (rc), "+D" (a1), "+S" (a2), "+d" (a3)
                       : "0" (op) : "memory" );
    else
        asm volatile ( "vmmcall" : "=a" (rc), "+D" (a1), "+S" (a2), "+d" (a3)
                       : "0" (op) : "memory" );

    return rc;
}

static void __attribute__((noreturn)) shut_down(unsigned int reason)
{
    struct sched_shutdown shutdown = { .reason = reason };

    hypercall(__HYPERVISOR_sched_op, SCHEDOP_shutdown,
              (unsigned long)&shutdown, 0);
    for ( ; ; )
        asm volatile ( "cli; hlt" );
}

static void __attribute__((noreturn)) wrong(unsigned int line, uint64_t got,
                                            uint64_t want)
{
    if ( __sync_bool_compare_and_swap(&report.line, 0, line) )
    {
        report.got = got;
        report.want = want;
    }
    shut_down(SHUTDOWN_crash);
}

#define expect(got, want)                                       \
    do {                                                        \
        uint64_t got_ = (got), want_ = (want);                  \
        if ( got_ != want_ )                                    \
            wrong(__LINE__, got_, want_);                       \
    } while ( 0 )

/* ---- The local APIC, in x2APIC mode ---- */

static inline uint64_t rdmsr(uint32_t msr)
{
    uint32_t low, high;

    asm volatile ( "rdmsr" : "=a" (low), "=d" (high) : "c" (msr) );

    return low | (uint64_t)high << 32;
}

static inline void wrmsr(uint32_t msr, uint64_t value)
{
    asm volatile ( "wrmsr" :: "c" (msr), "a" ((uint32_t)value),
                   "d" ((uint32_t)(value >> 32)) : "memory" );
}

#define ICR_INIT    0x4500      /* asserted */
#define ICR_SIPI    0x4600
#define ICR_NMI     0x4400
#define ICR_FIXED   0x4000
#define ICR_OTHERS  0xc0000

static void send(unsigned int cpu, uint32_t low)
{
    fence();
    wrmsr(0x830, (uint64_t)(cpu * 2) << 32 | low);
}

static void apic_on(void)
{
    wrmsr(0x1b, rdmsr(0x1b) | 0xc00);
    wrmsr(0x80f, 0x1ff);
}

/* ---- Interrupts ---- */

struct frame { uint64_t rip, cs, rflags, rsp, ss; };

/* Each of these is written by one vCPU only. */
static volatile uint64_t pings PAGE_ALIGNED, pongs PAGE_ALIGNED;
static volatile uint64_t crowd PAGE_ALIGNED, nmis;

static inline void eoi(void)
{
    wrmsr(0x80b, 0);
}

static void __attribute__((interrupt)) on_ping(struct frame *f)
{
    (void)f;
    pings++;
    eoi();
    send(0, ICR_FIXED | PONG);
}

static void __attribute__((interrupt)) on_pong(struct frame *f)
{
    (void)f;
    pongs++;
    eoi();
}

static void __attribute__((interrupt)) on_crowd(struct frame *f)
{
    (void)f;
    crowd++;
    eoi();
}

static void on_events(unsigned int cpu);

static void __attribute__((interrupt)) on_upcall(struct frame *f)
{
    (void)f;
    eoi();
    on_events(rdmsr(0x802) / 2);
}

static void __attribute__((interrupt)) on_nmi(struct frame *f)
{
    (void)f;
    nmis++;
}

static void __attribute__((interrupt)) on_other(struct frame *f)
{
    wrong(__LINE__, f->rip, 0);
}

static void __attribute__((interrupt)) on_error(struct frame *f, uint64_t error)
{
    wrong(__LINE__, f->rip, error);
}

static struct gate { uint64_t low, high; } idt[256] PAGE_ALIGNED;

static void set_gate(unsigned int vector, const void *handler)
{
    uint64_t to = (uint64_t)handler;

    idt[vector] = (struct gate){
        .low = (to & 0xffff) | 0x08 << 16 | (to >> 16 & 0xffff) << 48 |
               0x8e00ULL << 32,
        .high = to >> 32,
    };
}

static void make_idt(void)
{
    unsigned int i;

    for ( i = 0; i < 256; i++ )
        set_gate(i, (1U << 8 | 1U << 10 | 1U << 11 | 1U << 12 | 1U << 13 |
                     1U << 14 | 1U << 17) >> i & 1 && i < 32
                    ? (const void *)on_error : (const void *)on_other);
    set_gate(2, on_nmi);
    set_gate(PING, on_ping);
    set_gate(PONG, on_pong);
    set_gate(CROWD, on_crowd);
    set_gate(UPCALL, on_upcall);
}

static void load_idt(void)
{
    struct { uint16_t limit; uint64_t base; } __attribute__((packed)) pointer =
        { sizeof(idt) - 1, (uint64_t)idt };

    asm volatile ( "lidt %0" :: "m" (pointer) );
}

/* Until an interrupt has made *count this. */
static void wait_halted(const volatile uint64_t *count, uint64_t target)
{
    asm volatile ( "cli" ::: "memory" );
    while ( *count < target )
        asm volatile ( "sti; hlt; cli" ::: "memory" );
}

/* ---- What both do ---- */

static volatile uint64_t word PAGE_ALIGNED;

static void count(void)
{
    unsigned int i;

    for ( i = 0; i < COUNTS; i++ )
        asm volatile ( "lock incq %0" : "+m" (word) );
}

static volatile uint64_t turn PAGE_ALIGNED, message[WORDS] PAGE_ALIGNED;

/* Round r belongs to vCPU r % 2. */
static void turns(unsigned int cpu)
{
    unsigned int r, i;

    for ( r = cpu; r < TURNS; r += 2 )
    {
        while ( turn != r )
            relax();
        if ( r )
        {
            uint64_t then = message[0], now = ticks();

            if ( (int64_t)(now - then) < 0 )
                wrong(__LINE__, now, then);
            if ( now - then < report.least_ticks )
                report.least_ticks = now - then;
            for ( i = 1; i < WORDS; i++ )
                expect(message[i], (r - 1) * 1000003ULL + i);
        }
        for ( i = 1; i < WORDS; i++ )
            message[i] = r * 1000003ULL + i;
        message[0] = ticks();
        barrier();
        turn = r + 1;
    }
}

static volatile uint64_t mine[2][WORDS] PAGE_ALIGNED;
static volatile uint64_t seen[2][WORDS] PAGE_ALIGNED; /* by each, 1 + result */
static volatile uint64_t ready[2] PAGE_ALIGNED;

static void litmus(unsigned int cpu)
{
    unsigned int r;

    for ( r = 1; r <= LITMUS; r++ )
    {
        ready[cpu] = r;
        while ( ready[!cpu] < r )
            relax();
        mine[cpu][0] = r;
        fence();
        seen[cpu][r] = mine[!cpu][0];
    }
}

#define far_words ((volatile uint64_t *)REMOTE)

static void remote_check(uint64_t flip)
{
    unsigned int i;

    for ( i = 0; i < PAGES * WORDS; i += 7 )
    {
        expect(far_words[i], (i * 2654435761ULL) ^ flip);
        far_words[i] ^= ~0ULL;
    }
}

/* ---- Events, with two levels ---- */

#define shared ((struct shared_info *)SHARED)

/* Their own pages, and nothing else in them. */
static struct { struct vcpu_info info; } __attribute__((aligned(4096)))
    infos[2] PAGE_ALIGNED;

/* Ports, told by vCPU 0; and events, counted by who gets them. */
static volatile struct {
    uint64_t ipi[2], timer, silent;
} ports PAGE_ALIGNED;
static volatile struct { uint64_t ipis, timers; } __attribute__((aligned(4096)))
    came[2] PAGE_ALIGNED;

static long event_op(unsigned int cmd, void *arg)
{
    return hypercall(__HYPERVISOR_event_channel_op, cmd, (unsigned long)arg, 0);
}

static void send_event(unsigned int port)
{
    struct evtchn_send to = { .port = port };

    expect(event_op(EVTCHNOP_send, &to), 0);
}

static void unmask(unsigned int port)
{
    struct evtchn_unmask to = { .port = port };

    expect(event_op(EVTCHNOP_unmask, &to), 0);
}

/* On the vCPU to which it is bound. */
static bool take_event(unsigned int port)
{
    uint64_t bit = 1UL << port % 64;

    return port && (__sync_fetch_and_and(&shared->evtchn_pending[port / 64],
                                         ~bit) & bit);
}

static void on_events(unsigned int cpu)
{
    __atomic_store_n(&infos[cpu].info.evtchn_upcall_pending, 0,
                     __ATOMIC_SEQ_CST);
    __atomic_exchange_n(&infos[cpu].info.evtchn_pending_sel, 0,
                        __ATOMIC_SEQ_CST);
    if ( take_event(ports.ipi[cpu]) )
    {
        came[cpu].ipis++;
        if ( cpu )
            send_event(ports.ipi[0]);
    }
    if ( cpu && take_event(ports.timer) )
        came[cpu].timers++;
}

/* vCPU 1's, as its vcpu_info stays where it runs. */
static volatile struct {
    uint64_t ns;
    struct vcpu_time_info time;
} told PAGE_ALIGNED;

static uint64_t guest_ns(unsigned int cpu)
{
    const volatile struct vcpu_time_info *time = &infos[cpu].info.time;
    uint64_t delta, ns;
    uint32_t version;

    do {
        version = time->version & ~1U;
        barrier();
        delta = ticks() - time->tsc_timestamp;
        delta = time->tsc_shift < 0 ? delta >> -time->tsc_shift
                                    : delta << time->tsc_shift;
        ns = time->system_time +
             (delta >> 32) * time->tsc_to_system_mul +
             ((delta & 0xffffffff) * time->tsc_to_system_mul >> 32);
        barrier();
    } while ( time->version != version );

    return ns;
}

static void registers(unsigned int cpu)
{
    struct vcpu_register_vcpu_info info = {
        .mfn = (uint64_t)&infos[cpu] >> 12,
    };
    struct xen_hvm_evtchn_upcall_vector upcall = {
        .vcpu = cpu, .vector = UPCALL,
    };

    expect(hypercall(__HYPERVISOR_vcpu_op, VCPUOP_register_vcpu_info, cpu,
                     (unsigned long)&info), 0);
    expect(hypercall(__HYPERVISOR_hvm_op, HVMOP_set_evtchn_upcall_vector,
                     (unsigned long)&upcall, 0), 0);
}

static unsigned int bind_ipi(unsigned int cpu)
{
    struct evtchn_bind_ipi bind = { .vcpu = cpu, .port = 0x5555 };

    expect(event_op(EVTCHNOP_bind_ipi, &bind), 0);
    expect(bind.vcpu, cpu);
    expect(bind.port != 0 && bind.port / HALF == cpu, true);

    return bind.port;
}

static void port_is(unsigned int port, unsigned int what, unsigned int cpu)
{
    struct evtchn_status status = { .dom = DOMID_SELF, .port = port };

    expect(event_op(EVTCHNOP_status, &status), 0);
    expect(status.status, what);
    if ( what != EVTCHNSTAT_closed )
        expect(status.vcpu, cpu);
}

static void close_port(unsigned int port)
{
    struct evtchn_close to = { .port = port };

    expect(event_op(EVTCHNOP_close, &to), 0);
    expect(event_op(EVTCHNOP_close, &to), -EINVAL);
    port_is(port, EVTCHNSTAT_closed, 0);
}

/* By vCPU 0, for both, as Linux does it for a CPU that it brings up. */
static void begin_events(void)
{
    struct xen_add_to_physmap map = {
        .domid = DOMID_SELF, .space = XENMAPSPACE_shared_info,
        .gpfn = SHARED >> 12,
    };
    struct evtchn_bind_virq virq = { .virq = VIRQ_TIMER, .vcpu = 1 };
    struct evtchn_bind_vcpu move = { .vcpu = 1 };
    unsigned int i;

    expect(hypercall(__HYPERVISOR_memory_op, XENMEM_add_to_physmap,
                     (unsigned long)&map, 0), 0);
    for ( i = 0; i < 64; i++ )
        shared->evtchn_mask[i] = ~0UL;
    registers(0);
    registers(1);

    ports.ipi[0] = bind_ipi(0);
    ports.ipi[1] = bind_ipi(1);
    expect(event_op(EVTCHNOP_bind_virq, &virq), 0);
    expect(virq.virq, VIRQ_TIMER);
    expect(virq.vcpu, 1);
    expect(virq.port / HALF, 1);
    ports.timer = virq.port;
    expect(event_op(EVTCHNOP_bind_virq, &virq), -EEXIST);
    move.port = ports.ipi[0];
    expect(event_op(EVTCHNOP_bind_vcpu, &move), -ENOSYS);

    port_is(ports.ipi[0], EVTCHNSTAT_ipi, 0);
    port_is(ports.ipi[1], EVTCHNSTAT_ipi, 1);
    port_is(ports.timer, EVTCHNSTAT_virq, 1);
    port_is(HALF + 20, EVTCHNSTAT_closed, 0);
    unmask(ports.ipi[0]);
}

/* ---- vCPU 1 ---- */

/* Its own ports, and those of slice 0, as it sees them. */
static void begin_events_of_1(void)
{
    struct evtchn_bind_vcpu move = { .port = ports.ipi[0], .vcpu = 0 };
    unsigned int port = bind_ipi(1), other = bind_ipi(0);

    port_is(port, EVTCHNSTAT_ipi, 1);
    port_is(other, EVTCHNSTAT_ipi, 0);
    port_is(ports.ipi[0], EVTCHNSTAT_ipi, 0);
    port_is(ports.ipi[1], EVTCHNSTAT_ipi, 1);
    expect(event_op(EVTCHNOP_bind_vcpu, &move), -ENOSYS);
    close_port(port);
    close_port(other);
}

static void timer_of_1(void)
{
    struct vcpu_set_singleshot_timer timer = {
        .timeout_abs_ns = guest_ns(1) + SOON_NS,
    };
    uint64_t before = came[1].timers, now;

    expect(hypercall(__HYPERVISOR_vcpu_op, VCPUOP_stop_periodic_timer, 1, 0),
           0);
    expect(hypercall(__HYPERVISOR_vcpu_op, VCPUOP_set_singleshot_timer, 0,
                     (unsigned long)&timer), -ENOSYS);
    expect(hypercall(__HYPERVISOR_vcpu_op, VCPUOP_set_singleshot_timer, 1,
                     (unsigned long)&timer), 0);
    wait_halted(&came[1].timers, before + 1);
    now = guest_ns(1);
    if ( now < timer.timeout_abs_ns )
        wrong(__LINE__, now, timer.timeout_abs_ns);
    report.late_ns = now - timer.timeout_abs_ns;
}

static volatile struct {
    uint64_t order, task, done, starts, awake;
} mailbox PAGE_ALIGNED;

static void hypercalls_of_1(void)
{
    struct xen_feature_info features = { .submap_idx = 0 };

    expect(hypercall(__HYPERVISOR_xen_version, XENVER_get_features,
                     (unsigned long)&features, 0), 0);
    expect(features.submap != 0, true);
    expect(hypercall(__HYPERVISOR_sched_op, SCHEDOP_yield, 0, 0), 0);
    expect(hypercall(__HYPERVISOR_vcpu_op, VCPUOP_is_up, 0, 0), -ENOSYS);
    expect(hypercall(__HYPERVISOR_memory_op, XENMEM_maximum_ram_page, 0, 0),
           -ENOSYS);
}

static void __attribute__((noreturn)) second(void)
{
    uint64_t last = mailbox.order;
    unsigned int i;

    mailbox.starts++;
    for ( ; ; )
    {
        while ( mailbox.order == last )
            relax();
        last = mailbox.order;
        switch ( mailbox.task )
        {
        case COUNT:
            count();
            break;

        case TURN:
            turns(1);
            break;

        case LITMUS_TEST:
            litmus(1);
            break;

        case REMOTE_TEST:
            for ( i = 0; i < PAGES * WORDS; i++ )
                far_words[i] = i * 2654435761ULL;
            break;

        case REMOTE_TEST | 0x100:
            remote_check(~0ULL);
            break;

        case VECTOR:
            wait_halted(&pings, VECTORS);
            break;

        case BROADCAST:
            wait_halted(&crowd, 1);
            break;

        case NMI:
            asm volatile ( "cli; hlt" ::: "memory" );
            mailbox.awake = 1;
            break;

        case CALLS:
            hypercalls_of_1();
            break;

        case EVENT:
            begin_events_of_1();
            break;

        case EVENT | 0x100:
            wait_halted(&came[1].ipis, 1 + EVENTS);
            break;

        case TIMER:
            timer_of_1();
            break;

        case TIMER | 0x100:
            told.time = infos[1].info.time;
            told.ns = guest_ns(1);
            break;

        case CLOSED:
            asm volatile ( "sti" ::: "memory" );
            send_event(ports.silent);
            asm volatile ( "cli" ::: "memory" );
            break;

        case CLOSED | 0x100:
            wait_halted(&came[1].ipis, 1 + EVENTS + 1);
            break;

        case AGAIN:
            mailbox.done = last;
            for ( ; ; )
                asm volatile ( "cli; hlt" );
        }
        mailbox.done = last;
    }
}

/* ---- vCPU 0 ---- */

static void begin(unsigned int task)
{
    report.stage = task & 0xff;
    mailbox.task = task;
    barrier();
    mailbox.order++;
}

static void finish(void)
{
    while ( mailbox.done != mailbox.order )
        relax();
}

static void start_second(uint64_t starts)
{
    unsigned int i;

    for ( i = 0; i < (unsigned int)(code_end - code); i++ )
        ((volatile uint8_t *)CODE)[i] = code[i];
    send(1, ICR_INIT);
    send(1, ICR_SIPI | CODE >> 12);
    send(1, ICR_SIPI | CODE >> 12);
    while ( mailbox.starts != starts )
        relax();
}

static void hypercalls_of_0(void)
{
    expect(hypercall(__HYPERVISOR_vcpu_op, VCPUOP_is_up, 0, 0), 1);
    expect(hypercall(__HYPERVISOR_vcpu_op, VCPUOP_is_up, 1, 0), -ENOSYS);
    expect(hypercall(__HYPERVISOR_hvm_op, HVMOP_flush_tlbs, 0, 0), -ENOSYS);
}

/* As VECTOR, by events; the first one was sent while the port was masked. */
static void events(void)
{
    uint64_t since;
    unsigned int i;

    send_event(ports.ipi[1]);
    unmask(ports.ipi[1]);
    unmask(ports.timer);
    wait_halted(&came[0].ipis, 1);
    for ( i = 1; i <= EVENTS; i++ )
    {
        since = ticks();
        send_event(ports.ipi[1]);
        wait_halted(&came[0].ipis, 1 + i);
        report.event_ticks += ticks() - since;
    }
}

/* Both have the same line, so neither is ever ahead of the other. */
static void times(void)
{
    const struct vcpu_time_info *a = &infos[0].info.time;
    const volatile struct vcpu_time_info *b = &told.time;
    uint64_t before = guest_ns(0);

    begin(TIMER | 0x100);
    finish();
    if ( told.ns < before || guest_ns(0) < told.ns )
        wrong(__LINE__, told.ns, before);
    expect(a->tsc_timestamp, b->tsc_timestamp);
    expect(a->system_time, b->system_time);
    expect(a->tsc_to_system_mul, b->tsc_to_system_mul);
    expect(a->tsc_shift, b->tsc_shift);
    expect(a->flags, XEN_PVCLOCK_TSC_STABLE_BIT);
    expect(b->flags, XEN_PVCLOCK_TSC_STABLE_BIT);
}

/* What vCPU 0 has closed is void, for both, and can be bound anew: masked. */
static void closed(void)
{
    unsigned int port = ports.ipi[1];
    uint64_t before = came[1].ipis;

    close_port(ports.timer);
    close_port(port);
    send_event(port);
    ports.silent = bind_ipi(1);
    expect(ports.silent, port);
    begin(CLOSED);
    finish();
    expect(came[1].ipis, before);
    unmask(port);
    begin(CLOSED | 0x100);
    wait_halted(&came[0].ipis, 1 + EVENTS + 1);
    finish();
    expect(came[1].ipis, before + 1);
    close_port(port);
}

static void wake_by_nmi(void)
{
    while ( !mailbox.awake )
    {
        uint64_t since = ticks();

        send(1, ICR_NMI);
        /* It may have come before the HLT: then it takes another one. */
        while ( !mailbox.awake && ticks() - since < 1000000000 )
            relax();
    }
}

static void __attribute__((noreturn)) first(void)
{
    uint64_t began = ticks(), since;
    unsigned int i;

    /* A hypervisor that checks itself does not give cleared memory. */
    for ( i = 0; i < sizeof(report) / sizeof(uint64_t); i++ )
        ((volatile uint64_t *)REPORT)[i] = 0;
    report.magic = 0x7473657547204d44ULL;
    report.stage = START;
    report.least_ticks = ~0ULL;
    start_second(1);

    begin(COUNT);
    count();
    finish();
    expect(word, 2 * COUNTS);
    report.counted = word;

    begin(TURN);
    turns(0);
    finish();
    report.turns = turn;
    expect(turn, TURNS);

    begin(LITMUS_TEST);
    litmus(0);
    finish();
    for ( i = 1; i <= LITMUS; i++ )
    {
        if ( seen[0][i] < i && seen[1][i] < i )
            wrong(__LINE__, seen[0][i], i);
        if ( seen[0][i] < i || seen[1][i] < i )
            report.one_old++;
        else
            report.both_new++;
    }

    begin(REMOTE_TEST);
    finish();
    remote_check(0);
    begin(REMOTE_TEST | 0x100);
    finish();
    remote_check(0);

    begin(VECTOR);
    for ( i = 1; i <= VECTORS; i++ )
    {
        since = ticks();
        send(1, ICR_FIXED | PING);
        wait_halted(&pongs, i);
        report.pong_ticks += ticks() - since;
    }
    finish();
    expect(pings, VECTORS);
    expect(pongs, VECTORS);
    report.pings = pings;
    report.pongs = pongs;

    begin(BROADCAST);
    send(0, ICR_OTHERS | ICR_FIXED | CROWD);
    finish();
    report.crowd = crowd;
    expect(crowd, 1);

    begin(NMI);
    wake_by_nmi();
    finish();
    report.nmis = nmis;
    expect(nmis != 0, true);

    begin(CALLS);
    finish();
    hypercalls_of_0();

    report.stage = EVENT;
    begin_events();
    begin(EVENT);
    finish();
    begin(EVENT | 0x100);
    events();
    finish();
    report.events = came[1].ipis;
    expect(came[1].ipis, 1 + EVENTS);

    begin(TIMER);
    finish();
    times();

    report.stage = CLOSED;
    closed();

    begin(AGAIN);
    finish();
    start_second(2);
    report.starts = mailbox.starts;

    report.shared_ticks = ticks() - began;
    report.stage = END;
    shut_down(SHUTDOWN_poweroff);
}

void run(unsigned int cpu);
void run(unsigned int cpu)
{
    uint32_t a = 0, b, c, d;

    if ( !cpu )
    {
        asm volatile ( "cpuid" : "+a" (a), "=b" (b), "=c" (c), "=d" (d) );
        intel = b == 0x756e6547; /* "Genu" */
        make_idt();
    }
    load_idt();
    apic_on();
    if ( cpu )
        second();
    first();
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
