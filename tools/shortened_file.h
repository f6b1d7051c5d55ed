// Models, datasets and text stores are read where they are mapped. If such a file becomes shorter
// meanwhile, the system sends SIGBUS to whoever reads on.
#pragma once

namespace medusa {

/// From now on that ends the process with status 2 and a message that names the file. What else
/// causes SIGBUS kills it as before.
void report_shortened_files();

}  // namespace medusa
