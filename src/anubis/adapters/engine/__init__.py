"""Where units run: ``process`` starts them on this machine, ``fake`` only tells that it did."""
