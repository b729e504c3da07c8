# A run that shows what stint shows: live output, colour, an exit code.
printf '\033[1mHello from stint.\033[0m This run works in %s\n' "$PWD"
done_steps=0
for step in 'Looking around' 'Counting the files' 'Thinking it over' 'Tidying up'; do
  printf '\033[36m%s\033[0m' "$step"
  for dot in 1 2 3; do
    sleep 0.3 2>/dev/null || sleep 1
    printf '.'
  done
  done_steps=$((done_steps + 1))
  printf ' \033[32mdone\033[0m \033[2m(%d of 4)\033[0m\n' "$done_steps"
done
printf '\033[1;32mAll done.\033[0m It runs again every minute, until you pause it.\n'
