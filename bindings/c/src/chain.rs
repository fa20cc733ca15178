//! Chains that change while they run.

use std::ffi::c_char;
use std::sync::Arc;

use paceline::chain::{Actions, Place, RunConfig, SequenceError};
use paceline::{Change, ChangeError, Collection, Link, LinkTarget, LiveChain, Member, Order, Verdict};
use serde_json::{Map as Object, Value as Json};

use crate::bound::PROGRAMS;
use crate::burst::BURSTS;
use crate::call;
use crate::edge::{edges, paceline_edge};
use crate::handles::Table;
use crate::host::HOSTS;
use crate::opaque::{paceline_burst, paceline_chain, paceline_host, paceline_program, paceline_worker};
use crate::raw::{Given, Out, Text, given};
use crate::status::{Failure, Report, paceline_status};
use crate::text;
use crate::told::ErrorOut;

/// A chain, with the objects of the file that it was loaded from, if it was.
#[derive(Clone)]
pub(crate) struct Chained {
    pub(crate) live: LiveChain,
    /// Collections by the numbers of their programs.
    pub(crate) objects: Arc<[(u32, Arc<Collection>)]>,
}

pub(crate) static CHAINS: Table<Chained, paceline_chain> = Table::new();
static WORKERS: Table<Box<paceline::ChainWorker>, paceline_worker> = Table::new();

/// Any revision of a chain.
pub const PACELINE_ANY_REVISION: u64 = u64::MAX;

/// Order of the programs of a chain.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum paceline_order {
    /// The order in which they are given.
    Given = 0,
    /// Their priorities, lower ones first, as in libxdp.
    Priority = 1,
}

/// A program of a chain. Several are an array of these; the first has the size of each.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_member {
    /// sizeof(struct paceline_member)
    pub size: usize,
    /// Its name in the chain; null for the program's own.
    pub name: Text,
    /// The program.
    pub program: *const paceline_program,
    /// Not 0 if `priority` and `actions` are given; 0 for what the object says with XDP_RUN_CONFIG, or 50 and pass.
    pub is_configured: u32,
    /// Lower ones run earlier, in a chain that priorities order.
    pub priority: u32,
    /// Verdicts after which the chain goes on: the sum of 1 << PACELINE_VERDICT_... of each.
    pub actions: u32,
    /// 0.
    pub reserved: u32,
}

/// Kind of a change.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum paceline_change_kind {
    /// Adds `member` at `place`, in a chain of edges without any.
    Add = 0,
    /// Removes the member `name`.
    Remove = 1,
    /// Puts `member` in the place of the member `name`.
    Replace = 2,
    /// Gives the member `name` the priority and actions of `member`.
    Configure = 3,
    /// Takes the member `name` to `place`.
    Reorder = 4,
    /// Replaces the edges that lead from the member `name`, in a chain of edges, by `edges`.
    Link = 5,
}

/// A place in a chain of given order.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum paceline_place {
    /// After all others, or where the priority puts it.
    Last = 0,
    /// Before all others.
    First = 1,
    /// Right before the member `other`.
    Before = 2,
    /// Right after the member `other`.
    After = 3,
}

/// A change of a chain. Several are an array of these; the first has the size of each.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_change {
    /// sizeof(struct paceline_change)
    pub size: usize,
    /// One of enum paceline_change_kind.
    pub kind: u32,
    /// One of enum paceline_place.
    pub place: u32,
    /// The member that it is about; null for PACELINE_CHANGE_KIND_ADD.
    pub name: Text,
    /// The member that `place` refers to.
    pub other: Text,
    /// The new member or its configuration; null if there is none.
    pub member: Given<paceline_member>,
    /// All edges of the member, of which none says where it leads from.
    pub edges: Given<paceline_edge>,
    /// Number of edges.
    pub edge_count: usize,
}

given!(paceline_member, paceline_change);

/// Makes a chain of programs. `order` is one of enum paceline_order. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_chain_new(
    members: Given<paceline_member>,
    count: usize,
    order: u32,
    error: ErrorOut,
) -> *mut paceline_chain {
    call::handle(error, || {
        let order = match order {
            0 => Order::Given,
            1 => Order::Priority,
            _ => return Err(Failure::argument(format!("{order} is no enum paceline_order"))),
        };
        give(self::members(members, count)?, order, |_| None)
    })
}

/// Makes a chain of programs by edges: packets enter at the member `first`, or at the first one given if it is null, and go on by the
/// edges. A verdict without an edge ends the chain with it. Loops are allowed: a packet for which a 33rd program would run is aborted. Null
/// on failure, where `index` of the error's details is that of the wrong member or edge, if it is about one.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_chain_new_edges(
    members: Given<paceline_member>,
    count: usize,
    first: Text,
    edges: Given<paceline_edge>,
    edge_count: usize,
    error: ErrorOut,
) -> *mut paceline_chain {
    call::handle(error, || {
        let members = self::members(members, count)?;
        let entry = members.first().map(|member| member.name().to_owned()).unwrap_or_default();
        let first = first.optional()?.map_or(entry, str::to_owned);
        let mut links: Vec<_> = members.iter().map(|member| (member.name().to_owned(), Vec::new())).collect();
        let given = self::edges(edges, edge_count)?;
        for (index, (from, link)) in given.iter().enumerate() {
            let failed = |failure: Failure| failure.at(index);
            let no_from = || failed(Failure::argument("an edge has a member that it leads from"));
            let from = from.as_ref().ok_or_else(no_from)?;
            match links.iter_mut().find(|(name, _)| name == from) {
                Some((_, links)) => links.push(link.clone()),
                None => {
                    let names = links.iter().map(|(name, _)| name.clone()).collect();
                    return Err(failed(of_change(&ChangeError::NoMember { name: from.clone(), names })));
                }
            }
        }
        let index = |error: &ChangeError| wrong_edge(error, &given);
        give(members, Order::Links { first, links }, index)
    })
}

/// A chain; an error that is about no member has the index of what it is about by `index`.
fn give(
    members: Vec<Member>,
    order: Order,
    index: impl FnOnce(&ChangeError) -> Option<usize>,
) -> Result<*mut paceline_chain, Failure> {
    let names: Vec<String> = members.iter().map(|member| member.name().to_owned()).collect();
    let ids: Vec<u32> = members.iter().map(|member| member.program().id()).collect();
    let live = LiveChain::new(members, order).map_err(|error| {
        let index = match &error {
            ChangeError::NameTaken(taken) => nth(&names, 1, |name| name == taken),
            ChangeError::Sequence(SequenceError::Exists) => {
                (1..ids.len()).find(|&index| ids[..index].contains(&ids[index]))
            }
            error => index(error),
        };
        let failure = of_change(&error);
        match index {
            Some(index) => failure.at(index),
            None => failure,
        }
    })?;
    CHAINS.give(Chained { live, objects: Arc::default() })
}

/// Index of the edge that leads to no member, or is the second one of a verdict.
fn wrong_edge(error: &ChangeError, edges: &[(Option<String>, Link)]) -> Option<usize> {
    match error {
        ChangeError::NoMember { name, .. } => {
            nth(edges, 0, |(_, link)| matches!(&link.target, LinkTarget::Program(to) if to == name))
        }
        ChangeError::TwoLinks { name, after } => {
            nth(edges, 1, |(from, link)| from.as_ref() == Some(name) && link.after == *after)
        }
        _ => None,
    }
}

/// Index of an item for which a condition holds, behind `before` others.
fn nth<T>(list: &[T], before: usize, holds: impl Fn(&T) -> bool) -> Option<usize> {
    let mut found = list.iter().enumerate().filter(|(_, item)| holds(item));
    found.nth(before).map(|(index, _)| index)
}

fn members(members: Given<paceline_member>, count: usize) -> Result<Vec<Member>, Failure> {
    let mut list = Vec::new();
    members.each(count, |index, given| {
        list.push(member(&given).map_err(|failure| failure.at(index))?);
        Ok(())
    })?;
    Ok(list)
}

/// Frees a handle of a chain. Its workers go on. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_chain_free(chain: *mut paceline_chain) -> paceline_status {
    call::plain_status(|| CHAINS.free(chain))
}

/// Changes a chain, while it runs or not: all of the changes or, on failure, none. Every worker runs the changed chain from its next burst
/// on. `expected` is the revision that the changes are meant for, or PACELINE_ANY_REVISION; `revision` gets the new
/// one.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_chain_change(
    chain: *const paceline_chain,
    changes: Given<paceline_change>,
    count: usize,
    expected: u64,
    revision: Out<u64>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let chain = CHAINS.get(chain)?.live;
        let mut list = Vec::new();
        changes.each(count, |index, given| {
            list.push(change(&given).map_err(|failure| failure.at(index))?);
            Ok(())
        })?;
        let expected = Some(expected).filter(|expected| *expected != PACELINE_ANY_REVISION);
        let layout = chain.change(expected, list).map_err(|error| of_change(&error))?;
        revision.write(layout.revision);
        Ok(())
    })
}

/// Status and counts of a chain as JSON: {"revision": 1, "programs": [{"name": ..., "id": ..., "verdicts": {"pass": 3, ...}, "others":
/// 0}, ...]}, in the order in which they run. Counts are those of workers that count. Free the text with paceline_string_free. Null on
/// failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_chain_status(chain: *const paceline_chain, error: ErrorOut) -> *mut c_char {
    call::value(error, std::ptr::null_mut(), || {
        let status = CHAINS.get(chain)?.live.status();
        let layout = &status.layout;
        let programs =
            layout.names.iter().zip(&layout.ids).zip(&status.programs).map(|((name, id), counts)| {
                let verdicts = Verdict::ALL.iter().zip(counts.verdicts);
                let verdicts: Object<String, Json> =
                    verdicts.map(|(verdict, count)| (verdict.name().to_owned(), count.into())).collect();
                serde_json::json!({"name": name, "id": id, "verdicts": verdicts, "others": counts.others})
            });
        let programs: Json = programs.collect();
        let status = serde_json::json!({"revision": layout.revision, "programs": programs});
        Ok(text::give(&status.to_string()))
    })
}

/// A worker that runs the chain on one thread. If `counts` is not 0, it counts what programs return. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_chain_worker(
    chain: *const paceline_chain,
    counts: u32,
    error: ErrorOut,
) -> *mut paceline_worker {
    call::handle(error, || {
        let worker = CHAINS.get(chain)?.live.worker();
        let worker =
            if counts == 0 { worker } else { worker.counted().map_err(|error| of_change(&error))? };
        WORKERS.give(Box::new(worker))
    })
}

/// Frees a worker, whose counts go to its chain. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_worker_free(worker: *mut paceline_worker) -> paceline_status {
    call::plain_status(|| WORKERS.free(worker))
}

/// Runs the chain, as it is now, over the packets of a burst, in order. Fails as paceline_program_run_burst does.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_worker_run_burst(
    worker: *mut paceline_worker,
    burst: *mut paceline_burst,
    host: *mut paceline_host,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let mut worker = WORKERS.lock(worker)?;
        let mut host = HOSTS.lock(host)?;
        let mut held = BURSTS.lock(burst)?;
        let run = host.run_with(held.burst(), |burst, host| worker.run_burst(burst, host));
        run.map_err(|fault| Failure::of(paceline_status::Fault, &fault).at(fault.index))
    })
}

fn member(given: &paceline_member) -> Result<Member, Failure> {
    let bound = PROGRAMS.get(given.program)?;
    let name = given.name.optional()?.unwrap_or(&bound.program().spec().name);
    let member = bound.member(name);
    Ok(if given.is_configured == 0 { member } else { member.with_config(config(given)?) })
}

fn config(given: &paceline_member) -> Result<RunConfig, Failure> {
    if given.actions >> Verdict::ALL.len() != 0 {
        return Err(Failure::argument(format!("{:#x} are no verdicts", given.actions)));
    }
    let is_in = |verdict: Verdict| given.actions & 1 << verdict as u32 != 0;
    let actions = Verdict::ALL
        .into_iter()
        .fold(Actions::NONE, |actions, verdict| actions.with(verdict, is_in(verdict)));
    Ok(RunConfig { priority: given.priority, actions })
}

fn change(given: &paceline_change) -> Result<Change, Failure> {
    let name = || given.name.required("the name of a member").map(str::to_owned);
    let new = || given.member.required();
    Ok(match given.kind {
        0 => {
            let member = member(&new()?)?;
            let place = Some(place(given)?).filter(|place| !matches!(place, Place::Last));
            Change::Add { member, place }
        }
        1 => Change::Remove { name: name()? },
        2 => Change::Replace { name: name()?, member: member(&new()?)? },
        3 => Change::Configure { name: name()?, config: config(&new()?)? },
        4 => Change::Reorder { name: name()?, place: place(given)? },
        5 => {
            let edges = edges(given.edges, given.edge_count)?;
            if edges.iter().any(|(from, _)| from.is_some()) {
                return Err(Failure::argument("edges of a change lead from the member that is changed"));
            }
            Change::Link { name: name()?, links: edges.into_iter().map(|(_, link)| link).collect() }
        }
        kind => return Err(Failure::argument(format!("{kind} is no enum paceline_change_kind"))),
    })
}

fn place(given: &paceline_change) -> Result<Place<String>, Failure> {
    let other = || given.other.required("the member that the place refers to").map(str::to_owned);
    Ok(match given.place {
        0 => Place::Last,
        1 => Place::First,
        2 => Place::Before(other()?),
        3 => Place::After(other()?),
        place => return Err(Failure::argument(format!("{place} is no enum paceline_place"))),
    })
}

pub(crate) fn of_change(error: &ChangeError) -> Failure {
    let program = match error {
        ChangeError::NoMember { name, .. }
        | ChangeError::Needed { name, .. }
        | ChangeError::TwoLinks { name, .. } => Some(name.clone()),
        ChangeError::NameTaken(name) => Some(name.clone()),
        _ => None,
    };
    Failure::told(Report {
        status: Some(paceline_status::Chain),
        message: paceline::with_causes(error),
        program,
        ..Report::default()
    })
}
