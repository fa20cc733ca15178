//! Frames move and resize within the limits of `net/core/filter.c`; the text cases under `tests/cases/xdp/` check the same limits
//! against the kernel.

use paceline_frame::{
    AdjustError, Burst, DeviceMetadata, Frame, FrameMeta, MAX_PACKET, PushError, Redirect, RedirectTarget,
};

fn one(packet: &[u8]) -> Burst {
    let mut burst = Burst::new(1);
    burst.push(packet, FrameMeta::default()).expect("there is room");
    burst
}

fn with<R>(burst: &mut Burst, f: impl FnOnce(&mut Frame) -> R) -> R {
    let mut frame = burst.frame_mut(0);
    // SAFETY: the frame is neither moved nor swapped, only adjusted.
    f(unsafe { frame.descriptor_mut() })
}

#[test]
fn head_grows_to_the_kept_area_and_not_further() {
    let mut burst = one(&[1; 60]);
    with(&mut burst, |frame| {
        assert_eq!(frame.adjust_head(-217), Err(AdjustError::NoRoom));
        assert_eq!(frame.adjust_head(-216), Ok(()));
        assert_eq!(frame.packet()[..216], [0; 216]);
        assert_eq!(frame.packet()[216..], [1; 60]);
        assert_eq!(frame.adjust_head(216 + 47), Err(AdjustError::TooShort));
        assert_eq!(frame.adjust_head(216 + 46), Ok(()));
        assert_eq!(frame.len(), 14);
        assert_eq!(frame.adjust_head(i32::MIN), Err(AdjustError::NoRoom));
        assert_eq!(frame.adjust_head(i32::MAX), Err(AdjustError::TooShort));
    });
}

#[test]
fn tail_grows_with_zeros_to_the_tailroom() {
    let mut burst = one(&[1; 60]);
    with(&mut burst, |frame| {
        assert_eq!(frame.adjust_tail(-47), Err(AdjustError::TooShort));
        assert_eq!(frame.adjust_tail(-40), Ok(()));
        assert_eq!(frame.adjust_tail(3500), Ok(()));
        assert_eq!(frame.len(), 3520);
        assert_eq!(frame.packet()[..20], [1; 20]);
        assert!(frame.packet()[20..].iter().all(|&b| b == 0), "what reappears is not what was cut");
        assert_eq!(frame.adjust_tail(1), Err(AdjustError::NoRoom));
        assert_eq!(frame.adjust_tail(i32::MAX), Err(AdjustError::NoRoom));
        assert_eq!(frame.adjust_tail(i32::MIN), Err(AdjustError::TooShort));
    });
}

#[test]
fn metadata_is_in_fours_up_to_252_and_moves_with_the_head() {
    let mut burst = one(&[1; 60]);
    with(&mut burst, |frame| {
        assert_eq!(frame.adjust_meta(-3), Err(AdjustError::BadMetadata));
        assert_eq!(frame.adjust_meta(4), Err(AdjustError::NoRoom));
        assert_eq!(frame.adjust_meta(-256), Err(AdjustError::NoRoom));
        assert_eq!(frame.adjust_meta(-216), Ok(()));
        assert_eq!(frame.metadata().len(), 216);
        assert_eq!(frame.adjust_head(-4), Err(AdjustError::NoRoom));
        assert_eq!(frame.adjust_head(36), Ok(()));
        assert_eq!(frame.metadata().len(), 216);
        assert_eq!(frame.adjust_meta(-36), Ok(()));
        assert_eq!(frame.metadata().len(), 252);
        assert_eq!(frame.adjust_meta(252), Ok(()));
        assert!(frame.metadata().is_empty());
    });
}

#[test]
fn the_next_packet_does_not_see_what_the_last_left_in_the_headroom() {
    let mut burst = one(&[1; 60]);
    with(&mut burst, |frame| {
        frame.adjust_head(-20).expect("there is room");
        frame.packet_mut().fill(9);
        frame.adjust_head(20).expect("it is long enough");
    });
    burst.clear();
    burst.push(&[1; 60], FrameMeta::default()).expect("there is room");
    with(&mut burst, |frame| {
        frame.adjust_head(-20).expect("there is room");
        assert_eq!(frame.packet()[..20], [0; 20]);
    });
}

#[test]
fn what_the_device_tells_stays_until_the_next_packet() {
    let told = DeviceMetadata {
        timestamp_ns: u64::MAX,
        hash: u32::MAX,
        hash_type: 1,
        vlan_protocol: [0x81, 0],
        vlan_tag: 7,
        timestamp_error: 61,
        hash_error: 0,
        vlan_error: 95,
    };
    let mut burst = one(&[1; 60]);
    assert_eq!(burst.frame(0).device_metadata(), None);
    burst.frame_mut(0).set_device_metadata(&told);
    with(&mut burst, |frame| {
        frame.adjust_head(-216).expect("there is room");
        assert_eq!(frame.packet()[..216], [0; 216], "it is no part of the packet");
        frame.adjust_meta(-4).expect_err("there is no room");
        frame.packet_mut().fill(9);
        frame.adjust_head(216).expect("it is long enough");
        assert_eq!(frame.device_metadata(), Some(told));
        frame.adjust_head(-100).expect("there is room");
        assert_eq!(frame.packet()[..100], [9; 100], "bytes that were the packet's stay");
    });
    burst.clear();
    burst.push(&[1; 60], FrameMeta::default()).expect("there is room");
    assert_eq!(burst.frame(0).device_metadata(), None);
}

#[test]
fn a_long_packet_gets_a_long_buffer_and_a_longer_one_none() {
    let mut burst = Burst::new(2);
    burst.push(&vec![5; MAX_PACKET], FrameMeta::default()).expect("the longest packet fits");
    assert_eq!(
        burst.push(&vec![5; MAX_PACKET + 1], FrameMeta::default()),
        Err(PushError::TooLong(MAX_PACKET + 1))
    );
    assert_eq!(burst.len(), 1);
    assert_eq!(burst.frame(0).packet(), vec![5; MAX_PACKET]);
    burst.push(&[6; 60], FrameMeta::default()).expect("there is room");
    assert_eq!(burst.push(&[6; 60], FrameMeta::default()), Err(PushError::Full));
}

#[test]
fn a_filled_frame_forgets_its_redirect() {
    let mut burst = one(&[1; 60]);
    let redirect = Redirect { target: RedirectTarget::Map { map: 3, key: 7 }, flags: 8 };
    with(&mut burst, |frame| {
        assert_eq!(frame.redirect(), None);
        frame.set_redirect(Some(redirect));
        assert_eq!(frame.redirect(), Some(redirect));
    });
    burst.clear();
    burst.push(&[1; 60], FrameMeta::default()).expect("there is room");
    assert_eq!(burst.frame(0).redirect(), None);
}
