echo yes
