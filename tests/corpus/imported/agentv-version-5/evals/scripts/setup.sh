#!/bin/sh
touch ready
