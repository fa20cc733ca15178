//! The balancer in C with prefetches by hand (`workloads/balancer.c`).
#![allow(unsafe_code, reason = "calls C")]

use std::error::Error;

use paceline::{LookAhead, Program};
use paceline_frame::Frame;

use super::flow::{PACKET, key, set_flow};
use super::traffic::{Traffic, bursts, work};
use crate::measure::{Work, interleaved};
use crate::report::{Bar, Figure, Row};
use crate::settings::{Rows, Settings};

/// `struct balancer`.
#[repr(C)]
struct Balancer {
    _opaque: [u8; 0],
}

// `struct descriptor`.
const _: () = assert!(Frame::OFFSET_DATA == 0 && Frame::OFFSET_DATA_END == 8);
const _: () = assert!(Frame::OFFSET_VERDICT == 36 && size_of::<Frame>() == 64);

type Loop = unsafe extern "C" fn(*mut Balancer, *mut Frame, *mut Frame);

unsafe extern "C" {
    fn balancer_new(flows: u64) -> *mut Balancer;
    fn balancer_free(balancer: *mut Balancer);
    fn balancer_add(balancer: *mut Balancer, flow: *const [u8; 16]);
    fn balancer_plain(balancer: *mut Balancer, first: *mut Frame, end: *mut Frame);
    fn balancer_staged(balancer: *mut Balancer, first: *mut Frame, end: *mut Frame);
}

/// A balancer that knows its flows.
struct Native(*mut Balancer);

impl Native {
    fn new(flows: u32) -> Result<Self, Box<dyn Error>> {
        // SAFETY: as the functions are declared.
        let balancer = unsafe { balancer_new(flows.into()) };
        if balancer.is_null() {
            return Err("no memory for the balancer in C".into());
        }
        for flow in 0..flows {
            // SAFETY: it was made for so many flows.
            unsafe { balancer_add(balancer, &key(flow)) };
        }
        Ok(Self(balancer))
    }

    fn work(&self, settings: Settings, run: Loop, flows: u32) -> Result<Work<'_>, Box<dyn Error>> {
        let mut traffic = Traffic::new(&PACKET)?;
        Ok(Box::new(move || {
            for _ in 0..bursts(settings) {
                let burst = traffic.next(|rng, packet| set_flow(packet, rng.u32(..flows)));
                // SAFETY: the frames do not move; the loops read and write packets and verdicts.
                unsafe {
                    let frames = burst.descriptors_mut().as_mut_ptr_range();
                    run(self.0, frames.start, frames.end);
                }
            }
            Ok((bursts(settings) * traffic.burst.len()) as u64)
        }))
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: it is freed once.
        unsafe { balancer_free(self.0) }
    }
}

/// Our balancer in stages against both loops in C.
pub(super) fn rows(settings: Settings, program: &Program, flows: u32) -> Rows {
    let native = Native::new(flows)?;
    let write = move |rng: &mut fastrand::Rng, packet: &mut [u8]| set_flow(packet, rng.u32(..flows));
    let ours = program.clone().with_look_ahead(LookAhead::Auto);
    let mut contenders = [
        work(settings, ours, &PACKET, write)?,
        native.work(settings, balancer_staged, flows)?,
        native.work(settings, balancer_plain, flows)?,
    ];
    let times = interleaved(settings.smoke, &mut contenders)?;
    let row = |index: usize, against: &str| {
        let figure = Figure::Time { ours: times[0], against: Some(times[index]) };
        let name = format!("balancer, table for {flows} flows, with {flows}, look-ups ahead: auto");
        Row::new(name, against, figure)
    };
    let staged = row(1, "C, prefetches by hand in three loops");
    Ok(vec![Row { reach: Some(Bar::Ratio(0.9)), ..staged }, row(2, "C without prefetches")])
}
