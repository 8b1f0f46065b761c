"""What knows about fairseq; import fairseq only after `launcher.prepare_import()`."""
