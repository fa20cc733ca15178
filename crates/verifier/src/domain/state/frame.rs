//! Frames, and the whole state.

use std::fmt;
use std::rc::Rc;

use paceline_isa::Reg;
use paceline_spec::ObjectKind;

use super::stack::Stack;
use super::value::{MapRef, Pointer, Progress, Target, Value};

/// One active call of a function.
#[derive(Clone, Debug)]
pub struct Frame {
    /// `r0` to `r9`; `r10` always points to the frame's own stack.
    registers: [Value; 10],
    /// Its stack.
    pub stack: Stack,
    /// Index of the function among the program's.
    pub function: usize,
    /// Slot of the call in the frame below; 0 for the outermost.
    pub call_slot: usize,
    /// Whether it is a callback: on return the helper continues.
    pub is_callback: bool,
    /// Identifies this call, and counts how often its `may_goto` instructions continued.
    pub may_goto: Progress,
    /// The active call of a helper with a callback in this frame, and the number of calls it has made.
    pub calling_back: Option<Progress>,
    /// Its number, 0 for the outermost.
    number: u8,
}

impl Frame {
    /// A frame in which nothing is set.
    #[must_use]
    pub fn new(function: usize, call_slot: usize, number: u8) -> Self {
        Self {
            registers: [Value::Unset; 10],
            stack: Stack::default(),
            function,
            call_slot,
            is_callback: false,
            may_goto: Progress::default(),
            calling_back: None,
            number,
        }
    }

    /// Value of a register.
    #[must_use]
    pub fn get(&self, reg: Reg) -> Value {
        match self.registers.get(usize::from(reg.number())) {
            Some(value) => *value,
            None => Value::Pointer(Pointer::to(Target::Stack { frame: self.number })),
        }
    }

    /// Gives a register a value; the frame pointer has its own.
    pub fn set(&mut self, reg: Reg, value: Value) {
        if let Some(place) = self.registers.get_mut(usize::from(reg.number())) {
            *place = value;
        }
    }

    /// `r0` to `r9`.
    pub fn registers_mut(&mut self) -> &mut [Value; 10] {
        &mut self.registers
    }

    /// `r0` to `r9`.
    #[must_use]
    pub fn registers(&self) -> &[Value; 10] {
        &self.registers
    }

    /// Slot at which the caller continues when the function returns.
    #[must_use]
    pub fn return_slot(&self) -> usize {
        // A helper with a callback is simulated again after each call.
        if self.is_callback { self.call_slot } else { self.call_slot + 1 }
    }

    /// Registers and stack slots.
    pub(crate) fn places(&self) -> usize {
        self.registers.len() + self.stack.slots().len()
    }

    /// All values: registers and spilled ones.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.registers.iter_mut().chain(self.stack.slots_mut().iter_mut().map(|slot| &mut slot.value))
    }

    /// All values: registers and spilled ones.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.registers.iter().chain(self.stack.slots().iter().map(|slot| &slot.value))
    }
}

/// A resource that the program must release, such as a ring buffer record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its id, shared by the pointers to it.
    pub id: u32,
    /// Slot of the call that acquired it.
    pub slot: u32,
    /// Kind of the resource.
    pub kind: ReferenceKind,
}

/// Kind of a resource that must be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// A record of a ring buffer, by its address or as a dynptr.
    Record,
    /// A kernel object.
    Object(ObjectKind),
    /// An open-coded iterator.
    Iterator,
}

impl fmt::Display for ReferenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record => f.write_str("a ring buffer record"),
            Self::Object(kind) => write!(f, "a {}", kind.name()),
            Self::Iterator => f.write_str("an iterator"),
        }
    }
}

/// A spin lock that the program holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The map whose value contains it.
    pub map: MapRef,
    /// The id of the pointers to that value; 0 for the only value of an array, by its direct address.
    pub id: u32,
    /// Slot of the call that took it.
    pub slot: u32,
}

/// The state of the machine.
#[derive(Clone, Debug)]
pub struct State {
    /// Active calls, the running one last. Frames are shared between states, and copied on write.
    frames: Vec<Rc<Frame>>,
    /// Resources that must be released.
    pub references: Vec<Reference>,
    /// The lock that is held.
    pub lock: Option<Lock>,
}

impl State {
    /// A state with one frame.
    #[must_use]
    pub fn new(frame: Frame) -> Self {
        Self { frames: vec![Rc::new(frame)], references: Vec::new(), lock: None }
    }

    /// Bytes it takes, shared frames included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let slots: usize = self.frames().map(|frame| size_of_val(frame.stack.slots())).sum();
        size_of::<Self>()
            + self.frames.len() * size_of::<Frame>()
            + slots
            + size_of_val(self.references.as_slice())
    }

    /// Number of the running frame, 0 for the outermost.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.frames.len() - 1
    }

    /// The running frame.
    #[must_use]
    pub fn top(&self) -> &Frame {
        &self.frames[self.frames.len() - 1]
    }

    /// The running frame, to change.
    pub fn top_mut(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        Rc::make_mut(&mut self.frames[last])
    }

    /// A frame by its number.
    #[must_use]
    pub fn frame(&self, number: usize) -> Option<&Frame> {
        self.frames.get(number).map(Rc::as_ref)
    }

    /// A frame by its number, to change.
    pub fn frame_mut(&mut self, number: usize) -> Option<&mut Frame> {
        self.frames.get_mut(number).map(Rc::make_mut)
    }

    /// The frames, outermost first.
    pub fn frames(&self) -> impl DoubleEndedIterator<Item = &Frame> + ExactSizeIterator {
        self.frames.iter().map(Rc::as_ref)
    }

    /// Enters a function.
    pub fn push(&mut self, frame: Frame) {
        self.frames.push(Rc::new(frame));
    }

    /// Leaves the running function, unless it is the outermost.
    pub fn pop(&mut self) -> Option<Rc<Frame>> {
        if self.frames.len() > 1 { self.frames.pop() } else { None }
    }

    /// Value of a register of the running frame.
    #[must_use]
    pub fn get(&self, reg: Reg) -> Value {
        self.top().get(reg)
    }

    /// Gives a register of the running frame a value.
    pub fn set(&mut self, reg: Reg, value: Value) {
        self.top_mut().set(reg, value);
    }

    /// Changes every value for which `wanted` holds, in all frames; frames without one stay shared.
    pub fn update(&mut self, wanted: impl Fn(&Value) -> bool, mut change: impl FnMut(&mut Value)) {
        for frame in &mut self.frames {
            if frame.values().any(&wanted) {
                Rc::make_mut(frame).values_mut().filter(|v| wanted(v)).for_each(&mut change);
            }
        }
    }
}
