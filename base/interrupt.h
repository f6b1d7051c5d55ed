// Ctrl-C: a flag that long loops look at, so that they end cleanly and keep what is finished.
#pragma once

namespace medusa {

/// From now on SIGINT and SIGTERM set the flag; a second one ends the process at once.
void install_interrupt_handler();

/// True once SIGINT or SIGTERM came. Any thread may ask.
bool interrupted();

}  // namespace medusa
