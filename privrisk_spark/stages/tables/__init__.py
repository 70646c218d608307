"""Tables are opened, encoded as integers, and materialized; tables of links beside them."""
