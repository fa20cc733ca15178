//! The writer of Parquet files, or its absence from this build.

#[cfg(feature = "parquet")]
pub(super) use paceline_archive::parquet::ParquetWriter;

/// Stands for the writer in a build without it, which makes none.
#[cfg(not(feature = "parquet"))]
pub(super) struct ParquetWriter<W>(std::convert::Infallible, std::marker::PhantomData<W>);

#[cfg(not(feature = "parquet"))]
impl<W> ParquetWriter<W> {
    pub(super) fn new(_: W, _: &[paceline_archive::table::Field]) -> std::io::Result<Self> {
        Err(std::io::Error::other("this build writes no Parquet files, it lacks the feature `parquet`"))
    }

    pub(super) fn push<'a>(
        &mut self,
        _: impl IntoIterator<Item = paceline_archive::table::Value<'a>>,
    ) -> std::io::Result<()> {
        match self.0 {}
    }

    pub(super) fn finish(self) -> std::io::Result<()> {
        match self.0 {}
    }
}
