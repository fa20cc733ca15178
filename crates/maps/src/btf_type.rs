//! The description of a structure's fields.

/// Implements [`BtfType`](trait@crate::BtfType) for a structure of which all fields are listed with their types. A field that is left out,
/// or has another type, does not compile.
///
/// ```
/// use zerocopy::{FromBytes, Immutable, IntoBytes};
///
/// #[derive(FromBytes, IntoBytes, Immutable)]
/// #[repr(C)]
/// struct Flow {
///     address: [u8; 4],
///     port: u16,
///     reserved: [u8; 2], // where the structure of C has padding
/// }
///
/// paceline_maps::btf_type!(Flow { address: [u8; 4], port: u16, reserved: [u8; 2] });
/// # assert_eq!(<Flow as paceline_maps::BtfType>::SHAPE.size(), 8);
/// ```
#[macro_export]
macro_rules! btf_type {
    ($name:ident { $($field:ident: $ty:ty),* $(,)? }) => {
        impl $crate::BtfType for $name {
            const SHAPE: $crate::Shape = $crate::Shape::Struct(&[$($crate::ShapeField {
                name: stringify!($field),
                offset: ::core::mem::offset_of!($name, $field),
                shape: <$ty as $crate::BtfType>::SHAPE,
            }),*]);
        }
        // The listed types are those of the fields, and all fields are listed.
        const _: fn($name) = |value| {
            let $name { $($field),* } = value;
            let _: ($($ty,)*) = ($($field,)*);
        };
    };
}
