//! The shutdown sequence, step by step.

use std::time::Duration;

use ShutdownStep::{CloseStdin, Interrupt, Kill, Settle, Terminate};
use claude_agent_core::session::{GracePeriods, Shutdown, ShutdownStep};
use proptest::prelude::*;

const STEPS: [ShutdownStep; 5] = [Settle, Interrupt, CloseStdin, Terminate, Kill];

const GRACE: GracePeriods = GracePeriods {
    interrupt: Duration::from_secs(1),
    exit: Duration::from_secs(20),
    terminate: Duration::from_secs(300),
};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The steps that follow by themselves, and when.
fn play(first: ShutdownStep) -> Vec<(ShutdownStep, Duration)> {
    let mut shutdown = Shutdown::default();
    let mut now = seconds(1_000);
    let mut steps = Vec::new();
    assert!(shutdown.enter(first, now, &GRACE));
    while let Some(at) = shutdown.deadline() {
        assert_eq!(shutdown.due(at.saturating_sub(Duration::from_nanos(1))), None);
        let step = shutdown.due(at).unwrap();
        steps.push((step, at.saturating_sub(now)));
        now = at;
        assert!(shutdown.enter(step, now, &GRACE));
    }
    assert_eq!(shutdown.due(Duration::MAX), None);
    steps
}

#[test]
fn each_step_follows_the_one_before_it_after_its_grace_period() {
    let (after_interrupt, after_close, after_terminate) =
        ((CloseStdin, seconds(1)), (Terminate, seconds(20)), (Kill, seconds(300)));
    assert_eq!(play(Settle), [after_interrupt, after_close, after_terminate]);
    assert_eq!(play(Interrupt), [after_interrupt, after_close, after_terminate]);
    assert_eq!(play(CloseStdin), [after_close, after_terminate]);
    assert_eq!(play(Terminate), [after_terminate]);
    assert_eq!(play(Kill), []);
    assert_eq!(GRACE.total(), seconds(321));
}

#[test]
fn a_sequence_that_has_not_begun_has_no_deadline() {
    let shutdown = Shutdown::default();
    assert_eq!(
        (shutdown.step(), shutdown.deadline(), shutdown.due(Duration::MAX)),
        (None, None, None)
    );
}

#[test]
fn steps_can_come_early_but_never_twice_or_in_reverse() {
    for (place, first) in STEPS.into_iter().enumerate() {
        for (other, second) in STEPS.into_iter().enumerate() {
            let mut shutdown = Shutdown::default();
            shutdown.enter(first, seconds(0), &GRACE);
            let before = shutdown.deadline();
            let entered = shutdown.enter(second, seconds(1), &GRACE);
            assert_eq!(entered, other > place, "{first:?} {second:?}");
            assert_eq!(shutdown.step(), Some(first.max(second)));
            assert!(
                entered || shutdown.deadline() == before,
                "a step that is refused changes nothing"
            );
        }
    }
}

#[test]
fn unrepresentable_grace_period_never_ends() {
    let endless = GracePeriods { exit: Duration::MAX, ..GRACE };
    let mut shutdown = Shutdown::default();
    shutdown.enter(CloseStdin, seconds(5), &endless);
    assert_eq!(shutdown.deadline(), Some(Duration::MAX));
    assert_eq!(endless.total(), Duration::MAX);
}

proptest! {
    #[test]
    fn in_any_order_steps_only_go_forward_and_the_last_is_reached(
        events in proptest::collection::vec((0_usize..6, 0_u64..400), 0..20),
    ) {
        let mut shutdown = Shutdown::default();
        let mut now = Duration::ZERO;
        let mut last = None;
        for (step, pass) in events {
            now += seconds(pass);
            let step = STEPS.get(step).copied().or_else(|| shutdown.due(now));
            if let Some(step) = step {
                let entered = shutdown.enter(step, now, &GRACE);
                prop_assert_eq!(entered, Some(step) > last);
            }
            prop_assert!(shutdown.step() >= last);
            last = shutdown.step();
        }
        shutdown.enter(Settle, now, &GRACE);
        while let Some(at) = shutdown.deadline() {
            let step = shutdown.due(at).unwrap();
            prop_assert!(shutdown.enter(step, at, &GRACE));
        }
        prop_assert_eq!(shutdown.step(), Some(Kill));
    }
}
