# cmake -DFILES=a,b,... -DOUT=file -P: writes `#define DLC_KERNEL_SOURCES "<digest of the files' contents>"`.
string(REPLACE "," ";" FILES "${FILES}")
set(all "")
foreach(file ${FILES})
  file(SHA256 ${file} digest)
  string(APPEND all ${digest})
endforeach()
string(SHA256 digest "${all}")
file(WRITE ${OUT} "#define DLC_KERNEL_SOURCES \"${digest}\"\n")
