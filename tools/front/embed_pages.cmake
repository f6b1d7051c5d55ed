# Puts the text of the file PAGES into the template TEMPLATE: cmake -DPAGES=… -DTEMPLATE=… -DOUT=… -P embed_pages.cmake
file(READ ${PAGES} pages)
configure_file(${TEMPLATE} ${OUT} @ONLY)
