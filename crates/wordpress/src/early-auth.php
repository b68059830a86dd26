<?php
add_filter( 'application_password_is_api_request', function ( $is ) {
	$path = parse_url( $_SERVER['REQUEST_URI'] ?? '', PHP_URL_PATH ) ?: '';
	$rest = str_contains( $path, '/' . rest_get_url_prefix() . '/' ) || isset( $_GET['rest_route'] );
	return $is || ( $rest && ! is_admin() );
} );
