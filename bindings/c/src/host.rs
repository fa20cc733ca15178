//! Hosts: what programs see besides packets and maps, and who runs them on a thread.

use std::io::{self, Write};
use std::sync::Arc;

use paceline::{Burst, FrameRef, Host, TimeSource, Verdict, network};

use crate::bound::{Bound, PROGRAMS, of_burst_fault, of_fault};
use crate::call;
use crate::event::{self, paceline_event_function};
use crate::handles::{Table, Watch};
use crate::opaque::{paceline_host, paceline_program};
use crate::packet::paceline_packet;
use crate::raw::{Callback, Data, Filled, Out, Text, paceline_bytes_function, written};
use crate::status::{Failure, paceline_status};
use crate::told::ErrorOut;

/// A host, with what makes a call short.
pub(crate) struct HostState {
    pub(crate) host: Host,
    /// The program that ran last and its handle: while the handle lives, the program is not looked up again.
    last: Option<(Watch, Arc<Bound>)>,
    /// Whether the host must be told of packets before they run, for their times or their numbers.
    tells: bool,
    /// The packets of the last run of one packet and of the one before, by turns: a caller may pass what the last one left.
    packets: [Option<Box<Burst>>; 2],
    /// Index of the last one.
    last_packet: usize,
}

pub(crate) static HOSTS: Table<Box<HostState>, paceline_host> = Table::new();

/// The clocks that programs see.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum paceline_time {
    /// The system's.
    System = 0,
    /// That of each packet (`time_ns`).
    Packets = 1,
}

/// Fields of the sk_buff of a TC classifier.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_sk_buff {
    /// sizeof(struct paceline_sk_buff)
    pub size: usize,
    /// mark
    pub mark: u32,
    /// priority
    pub priority: u32,
    /// cb
    pub cb: [u32; 5],
    /// hash
    pub hash: u32,
    /// tstamp, in nanoseconds
    pub tstamp: u64,
    /// tc_index
    pub tc_index: u16,
    /// tc_classid
    pub tc_classid: u16,
    /// queue_mapping
    pub queue_mapping: u16,
    /// 0
    pub reserved: u16,
}

written!(paceline_sk_buff);

impl HostState {
    /// The program of a handle, kept for the next call.
    #[inline]
    fn find(&mut self, handle: *const paceline_program) -> Result<(), Failure> {
        let is_last = self.last.as_ref().is_some_and(|(last, _)| last.is_live(handle));
        if is_last { Ok(()) } else { self.look_up(handle) }
    }

    #[cold]
    fn look_up(&mut self, handle: *const paceline_program) -> Result<(), Failure> {
        // Also if the handle is wrong: a program that was freed does not stay here.
        self.last = None;
        let bound = PROGRAMS.get(handle)?;
        self.last = Some((PROGRAMS.watch(handle)?, bound));
        Ok(())
    }

    /// Runs a program over a burst.
    #[inline]
    pub(crate) fn run_burst(
        &mut self,
        handle: *const paceline_program,
        burst: &mut Burst,
    ) -> Result<(), Failure> {
        self.find(handle)?;
        self.tell(burst);
        let Some((_, bound)) = &self.last else { unreachable!("found") };
        let run = bound.program().run_burst(burst, &mut self.host);
        run.map_err(|fault| of_burst_fault(&fault, bound.program()))
    }

    /// Runs something else over a burst.
    #[inline]
    pub(crate) fn run_with<T>(
        &mut self,
        burst: &mut Burst,
        run: impl FnOnce(&mut Burst, &mut Host) -> T,
    ) -> T {
        self.tell(burst);
        run(burst, &mut self.host)
    }

    /// Runs a program over one packet, and gives its return value and what it means.
    pub(crate) fn run_one(
        &mut self,
        handle: *const paceline_program,
        packet: &paceline_packet,
    ) -> Result<(u64, Verdict), Failure> {
        self.find(handle)?;
        let Some((_, bound)) = &self.last else { unreachable!("found") };
        self.last_packet ^= 1;
        let burst = self.packets[self.last_packet].get_or_insert_with(|| Box::new(Burst::new(1)));
        burst.clear();
        packet.push(burst)?;
        if self.tells {
            self.host.arrive(burst);
        }
        let (program, mut frame) = (bound.program(), burst.frame_mut(0));
        let value = program.run_raw(&mut frame, &mut self.host).map_err(|fault| of_fault(&fault, program))?;
        Ok((value, program.spec().kind.rules().meaning.verdict(frame.code())))
    }

    /// The packet that ran last one by one.
    pub(crate) fn last_frame(&self) -> FrameRef<'_> {
        let Some(burst) = &self.packets[self.last_packet] else { unreachable!("a packet ran") };
        burst.frame(0)
    }

    #[inline]
    fn tell(&mut self, burst: &Burst) {
        if self.tells {
            self.host.arrive(burst);
        }
    }
}

/// A host for the worker of a number, which programs see as their CPU and per-CPU maps go by: below `cpus` of the load options. Null on
/// failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_host_new(cpu: u32, error: ErrorOut) -> *mut paceline_host {
    call::handle(error, || {
        let host = Host::new(cpu as usize);
        HOSTS.give(Box::new(HostState {
            host,
            last: None,
            tells: false,
            packets: [None, None],
            last_packet: 0,
        }))
    })
}

/// Frees a host. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_host_free(host: *mut paceline_host) -> paceline_status {
    call::plain_status(|| HOSTS.free(host))
}

/// Sets the seed of random numbers, which come from the system's clock otherwise.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_host_seed(
    host: *mut paceline_host,
    seed: u64,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        HOSTS.lock(host)?.host.seed(seed);
        Ok(())
    })
}

/// Sets the clocks that programs see: one of enum paceline_time.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_host_set_time(
    host: *mut paceline_host,
    time: u32,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let mut state = HOSTS.lock(host)?;
        let source = match time {
            0 => TimeSource::System,
            1 => TimeSource::Packets,
            _ => return Err(Failure::argument(format!("{time} is no enum paceline_time"))),
        };
        state.host.set_time(source);
        state.tells |= source == TimeSource::Packets;
        Ok(())
    })
}

/// Sets the network that programs see, from text: what `ip -j addr`, `ip -j route`, `ip -j rule`, `ip -j neigh`, `ss -tuan`, `conntrack -L`
/// and `sysctl net.ipv4.tcp_syncookies` print, one after the other.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_host_set_network(
    host: *mut paceline_host,
    network: Text,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let mut state = HOSTS.lock(host)?;
        let text = network.required("the network")?;
        let parsed = network::parse(text).map_err(|error| Failure::of(paceline_status::Network, &error))?;
        state.host.set_network(Arc::new(parsed));
        Ok(())
    })
}

/// Sets the receiver of events of perf event arrays, without which programs see -ENOENT. It is called by the thread that runs packets,
/// during the call that runs them, must return, and may not use the host or the burst of that call (they are
/// PACELINE_STATUS_BUSY). `data` is passed to it, until another receiver is set or the host is freed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_host_set_events(
    host: *mut paceline_host,
    function: paceline_event_function,
    data: Data,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let mut state = HOSTS.lock(host)?;
        if function.is_none() {
            return Err(Failure::argument("the function is null"));
        }
        let callback = Callback::new(function, data);
        state.host.set_events(Box::new(move |event| event::with(event, |event| callback.call_with(event))));
        state.tells = true;
        Ok(())
    })
}

/// Lines of bpf_trace_printk.
struct Lines(Callback<paceline_bytes_function>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.call(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sets the receiver of what programs print with bpf_trace_printk, which goes to standard error otherwise; null for none. Called as that
/// of events is; a line may come in parts.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_host_set_trace(
    host: *mut paceline_host,
    function: paceline_bytes_function,
    data: Data,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        HOSTS.lock(host)?.host.set_trace(Lines(Callback::new(function, data)));
        Ok(())
    })
}

/// Calls the functions of all due timers that programs started on this host; `count` gets their number.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_host_fire_timers(
    host: *mut paceline_host,
    count: Out<u64>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let fired = HOSTS.lock(host)?.host.fire_timers();
        count.write(fired.map_err(|fault| Failure::of(paceline_status::Fault, &fault))?);
        Ok(())
    })
}

/// The sk_buff of a packet that ran alone through a TC classifier.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_host_sk_buff(
    host: *mut paceline_host,
    sk_buff: Filled<paceline_sk_buff>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let skb = HOSTS.lock(host)?.host.sk_buff();
        sk_buff.write(paceline_sk_buff {
            size: size_of::<paceline_sk_buff>(),
            mark: skb.mark,
            priority: skb.priority,
            cb: skb.cb,
            hash: skb.hash,
            tstamp: skb.tstamp,
            tc_index: skb.tc_index,
            tc_classid: skb.tc_classid,
            queue_mapping: skb.queue_mapping,
            reserved: 0,
        })
    })
}
