# tool.cmake -- the program `tern` (src/tool), written against the public headers, and its manual page.
file(GLOB TERN_TOOL_SOURCES RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS src/tool/*.c)
# The files that `tern new` writes, as texts.
file(GLOB TERN_PROJECT_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/tool/project/*)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/project_files.c
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR}/src/tool/project -DOUTPUT=${PROJECT_BINARY_DIR}/project_files.c
          -P ${PROJECT_SOURCE_DIR}/cmake/project_files.cmake
  DEPENDS ${TERN_PROJECT_FILES} cmake/project_files.cmake VERBATIM)
add_executable(tern_tool ${TERN_TOOL_SOURCES} ${PROJECT_BINARY_DIR}/project_files.c $<TARGET_OBJECTS:tern_os_objects>)
target_include_directories(tern_tool PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(tern_tool PRIVATE TERN_VERSION_TEXT="${PROJECT_VERSION}")
target_link_libraries(tern_tool PRIVATE tern_names_shared tern_report_shared tern_shared tern_flags jansson::jansson Threads::Threads m)
if(TERN_MODELS)
  target_link_libraries(tern_tool PRIVATE tern_models_shared)
  target_compile_definitions(tern_tool PRIVATE TERN_TOOL_MODELS)
endif()
# build/tern is the folder of the plugins.
set_target_properties(tern_tool PROPERTIES OUTPUT_NAME tern RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
file(RELATIVE_PATH TERN_TOOL_LIBRARIES /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
set(folder $ORIGIN)
if(APPLE)
  set(folder @executable_path)
endif()
set_target_properties(tern_tool PROPERTIES INSTALL_RPATH ${folder}/${TERN_TOOL_LIBRARIES})
install(TARGETS tern_tool)
install(FILES src/tool/tern.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES src/tool/completion/tern.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tern)
install(FILES src/tool/completion/_tern DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
