"""Code that uses fairseq; import fairseq only after `fairseq_launcher.prepare_import()`."""
