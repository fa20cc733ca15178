//! Uses of values: how many, and the only user.

use crate::ir::arena::Side;
use crate::ir::cfg::Cfg;
use crate::ir::entity::{Block, Inst, Value};
use crate::ir::function::Function;

/// What uses a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// An instruction.
    Inst(Inst),
    /// The end of a block, for a condition, a result, or an argument of the next block.
    End(Block),
}

/// Uses of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    count: u32,
    last: Option<User>,
    /// Whether all uses are by the same user.
    is_one: bool,
}

/// Uses of the values of a function, in the blocks that its entry reaches.
#[derive(Clone, Debug, Default)]
pub struct Uses(Side<Value, Used>);

impl Uses {
    /// The uses in a function.
    #[must_use]
    pub fn of(function: &Function, cfg: &Cfg) -> Self {
        let mut uses = Self(Side::sized(function.value_count()));
        for &block in cfg.order() {
            let data = function.block(block);
            for &inst in &data.insts {
                function.inst(inst).op.operands(|value, _| uses.add(value, User::Inst(inst)));
            }
            let end = User::End(block);
            data.terminator.operands(|value, _| uses.add(value, end));
            data.terminator
                .targets()
                .iter()
                .flat_map(|target| &target.args)
                .for_each(|arg| uses.add(*arg, end));
        }
        uses
    }

    fn add(&mut self, value: Value, user: User) {
        let used = &mut self.0[value];
        used.is_one = used.count == 0 || (used.is_one && used.last == Some(user));
        (used.count, used.last) = (used.count + 1, Some(user));
    }

    /// Number of uses; a user that reads the value twice counts twice.
    #[must_use]
    pub fn count(&self, value: Value) -> u32 {
        self.0[value].count
    }

    /// The only user; `None` if there is none, or another one.
    #[must_use]
    pub fn only_user(&self, value: Value) -> Option<User> {
        let used = &self.0[value];
        used.last.filter(|_| used.is_one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::arena::Key;
    use crate::ir::text::parse;

    #[test]
    fn counts_and_only_users() {
        let module = parse(
            "function 0 \"f\" (r1) {
            block0(v0: i64):
                v1 = neg.i64 v0
                v2 = add.i64 v1, v1
                v3 = neg.i64 v0
                v4 = neg.i64 v0
                jump block1(v2, v3)
            block1(v5: i64, v6: i64):
                return v6
            block2:
                return v4
            }",
        )
        .expect("valid");
        let (_, function) = module.functions.iter().next().expect("one");
        let uses = Uses::of(function, &Cfg::of(function));
        let inst = |at: usize| Some(User::Inst(function.block(Block::new(0)).insts[at]));
        let end = |block| Some(User::End(Block::new(block)));
        for (value, count, only) in [
            (0, 3, None),
            (1, 2, inst(1)),
            (2, 1, end(0)),
            (3, 1, end(0)),
            // A block that is not reached uses nothing.
            (4, 0, None),
            (5, 0, None),
            (6, 1, end(1)),
        ] {
            let value = Value::new(value);
            assert_eq!((uses.count(value), uses.only_user(value)), (count, only), "{value}");
        }
    }
}
