# The files of the chat page, in the order in which they are joined: whoever uses a name stands below whoever makes it.
set(OMNIBUS_PAGE_STYLES colours controls layout turns prose dialogs)
set(OMNIBUS_PAGE_SCRIPTS
  dom storage theme clipboard notices
  markdown_inline markdown_blocks highlight markdown sse api
  chat chats settings answers
  composer turn_view log_view
  menu transfer chat_list models settings_dialog drawer shortcuts
  main)
